package rset_test

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

const one = `{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7","gpu":"0-1"}}],` +
	`"starttime":0.0,"expiration":0.0,"nodelist":["fluke[0-3]"]}}`

func TestEveryRecordedAllocationKeepsItsBytes(t *testing.T) {
	n, same := 0, 0
	for file, jobs := range map[string]int{"brokers": 33, "mixed": 380, "restart-pending": 8, "restart-done": 8} {
		for _, job := range refdata.Lines[struct{ R json.RawMessage }](t, "recorded/"+file+".jsonl.gz", jobs) {
			if len(job.R) == 0 || string(job.R) == "null" {
				continue
			}
			text := job.R
			if text[0] == '"' {
				var s string
				require.NoError(t, json.Unmarshal(text, &s))
				text = json.RawMessage(s)
			}
			r, err := rset.Parse(text)
			require.NoError(t, err)
			require.Equal(t, reprint(text), string(r.AppendJSON(nil)))
			require.NoError(t, r.Check())
			n++
			if string(text) == string(r.AppendJSON(nil)) {
				same++
			}
		}
	}
	require.Equal(t, 406, n)
	require.Equal(t, 338, same)
}

var timeMember = regexp.MustCompile(`"(starttime|expiration)":([0-9.]+)`)

// reprint returns a recorded R with its times in 17 digits, as Flux writes them
// and the recorder did not; all else is as it was.
func reprint(text []byte) string {
	return string(timeMember.ReplaceAllFunc(text, func(m []byte) []byte {
		key, value, _ := bytes.Cut(m, []byte(":"))
		f, _ := jsonobj.Float64(value)
		return jsonobj.AppendFloat(append(key[:len(key):len(key)], ':'), f)
	}))
}

// RS-1.
func TestAnInvalidRIsRefusedWithThePlace(t *testing.T) {
	in := func(execution string) string { return `{"version":1,"execution":{` + execution + `}}` }
	lite := func(entries string) string { return in(`"R_lite":[` + entries + `]`) }
	with := func(member string) string {
		return in(`"R_lite":[{"rank":"0-1","children":{"core":"0"}}],` + member)
	}
	for _, c := range []struct{ text, err string }{
		{``, `rset: invalid R: offset 0: unexpected end`},
		{`[]`, `rset: invalid R: offset 0: must be an object`},
		{`{"version":1`, `rset: invalid R: offset 12: unexpected end`},
		{`{"version":1,"version":1}`, `rset: invalid R: offset 13: duplicate key "version"`},
		{`{"execution":{"R_lite":[]}}`, `rset: invalid R: version: offset 0: key is missing`},
		{`{"version":2,"execution":{"R_lite":[]}}`, `rset: invalid R: version: offset 11: must be 1`},
		{`{"version":1.0,"execution":{"R_lite":[]}}`, `rset: invalid R: version: offset 11: must be 1`},
		{`{"version":4294967297,"execution":{"R_lite":[]}}`, `rset: invalid R: version: offset 11: must be 1`},
		{`{"version":1}`, `rset: invalid R: execution: offset 0: key is missing`},
		{`{"version":1,"execution":null}`, `rset: invalid R: execution: offset 25: must be an object`},
		{in(``), `rset: invalid R: execution.R_lite: offset 25: key is missing`},
		{in(`"R_lite":1`), `rset: invalid R: execution.R_lite: offset 35: must be an array`},
		{lite(`1`), `rset: invalid R: execution.R_lite[0]: offset 36: must be an object`},
		{lite(`{"children":{"core":"0"}}`), `rset: invalid R: execution.R_lite[0].rank: offset 36: key is missing`},
		{lite(`{"rank":"0"}`), `rset: invalid R: execution.R_lite[0].children: offset 36: key is missing`},
		{lite(`{"rank":"","children":{"core":"0"}}`), `rset: invalid R: execution.R_lite[0].rank: offset 44: must name a rank`},
		{lite(`{"rank":1,"children":{"core":"0"}}`), `rset: invalid R: execution.R_lite[0].rank: offset 44: must be a string`},
		{lite(`{"rank":"1,","children":{"core":"0"}}`), `rset: invalid R: execution.R_lite[0].rank: offset 44: idset: syntax error: offset 2: empty element in ""`},
		{lite(`{"rank":"16777217","children":{"core":"0"}}`), `rset: invalid R: execution.R_lite[0].rank: offset 44: idset: id out of range: offset 0: "16777217" is above 16777216`},
		{lite(`{"rank":"0","children":{"core":"1048577"}}`), `rset: invalid R: execution.R_lite[0].children.core: offset 67: idset: id out of range: offset 0: "1048577" is above 1048576`},
		{lite(`{"rank":"0","children":{"a\nb":7}}`), `rset: invalid R: execution.R_lite[0].children."a\nb": offset 67: must be a string`},
		{lite(`{"rank":"0","children":[]}`), `rset: invalid R: execution.R_lite[0].children: offset 59: must be an object`},
		{lite(`{"rank":"0","children":{"core":7}}`), `rset: invalid R: execution.R_lite[0].children.core: offset 67: must be a string`},
		{lite(`{"rank":"0-1","children":{"core":""}}`), `rset: invalid R: execution.R_lite[0]: offset 36: must have a resource`},
		{lite(`{"rank":"3","children":{"core":"0"}},{"rank":"1","children":{}}`), `rset: invalid R: execution.R_lite[1]: offset 73: must have a resource`},
		{lite(`{"rank":"0-4","children":{"core":"0-3"}},{"rank":"2","children":{"gpu":"0"}}`), `rset: invalid R: execution.R_lite[1]: offset 77: rank 2 is in another entry`},
		{lite(`{"rank":"2","children":{"core":"0-3"}},{"rank":"0,2-4","children":{"gpu":"0"}}`), `rset: invalid R: execution.R_lite[1]: offset 75: rank 2 is in another entry`},
		{with(`"starttime":-1`), `rset: invalid R: execution.starttime: offset 88: must be at least 0`},
		{with(`"starttime":1e999`), `rset: invalid R: offset 88: number out of range: "1e999"`},
		{with(`"starttime":null`), `rset: invalid R: execution.starttime: offset 88: must be a number`},
		{with(`"expiration":"1"`), `rset: invalid R: execution.expiration: offset 89: must be a number`},
		{with(`"starttime":5,"expiration":5`), `rset: invalid R: execution.expiration: offset 103: must be after starttime`},
		{with(`"nslots":-1`), `rset: invalid R: execution.nslots: offset 85: must be from 0 to 9223372036854775807`},
		{with(`"nslots":1.5`), `rset: invalid R: execution.nslots: offset 85: must be an integer`},
		{with(`"nodelist":"n[0-1]"`), `rset: invalid R: execution.nodelist: offset 87: must be an array`},
		{with(`"nodelist":[1]`), `rset: invalid R: execution.nodelist[0]: offset 88: must be a string`},
		{with(`"nodelist":["n[0-2]"]`), `rset: hosts do not match: execution.nodelist: offset 87: number of hosts is 3, must be 2`},
		{with(`"nodelist":[]`), `rset: hosts do not match: execution.nodelist: offset 87: number of hosts is 0, must be 2`},
		{with(`"properties":[]`), `rset: invalid R: execution.properties: offset 89: must be an object`},
		{with(`"properties":{"p":1}`), `rset: invalid R: execution.properties.p: offset 94: must be a string`},
		{with(`"properties":{"p^":"0"}`), `rset: invalid R: execution.properties."p^": offset 95: invalid property name`},
		{with(`"properties":{"":"0"}`), `rset: invalid R: execution.properties."": offset 93: invalid property name`},
		{with(`"properties":{"p":"0-9"}`), `rset: invalid R: execution.properties.p: offset 94: unknown ranks 2-9`},
	} {
		r, err := rset.Parse([]byte(c.text))
		require.Nil(t, r)
		require.EqualError(t, err, c.err, c.text)
		if !strings.HasPrefix(c.err, "rset: hosts") {
			require.ErrorContains(t, err, invalidR)
		} else {
			require.ErrorContains(t, err, badHosts)
		}
	}
	_, err := rset.Parse([]byte(with(`"nodelist":["n[0-"]`)))
	require.ErrorContains(t, err, invalidR)
	require.ErrorContains(t, err, "hostlist: syntax error")
	_, err = rset.Parse([]byte(lite(`{"rank":"x","children":{}}`)))
	require.ErrorContains(t, err, "idset: syntax error")
}

func TestEntriesComeInAnyOrder(t *testing.T) {
	for _, c := range []struct{ lite, want string }{
		{``, ``},
		{`{"rank":"1","children":{"core":"0"}},{"rank":"0","children":{"core":"0"}}`, `rank[0-1]/core0`},
		{`{"rank":"0","children":{"gpu":"","core":"0"}},{"rank":"1","children":{"core":"0"}}`, `rank[0-1]/core0`},
		{`{"rank":"5,9","children":{"core":"0"}},{"rank":"0-4,6","children":{"gpu":"0"}},{"rank":"7-8","children":{"core":"0"}}`, `rank[0-4,6]/gpu0 rank[5,7-9]/core0`},
		{`{"rank":"[16777216]","children":{"é\n":"[1]"},"node":"x"}`, "rank16777216/é\n1"},
	} {
		r := parse(t, `{"version":1,"execution":{"R_lite":[`+c.lite+`]}}`)
		require.Equal(t, c.want, r.String())
		require.NoError(t, r.Check())
		back := parse(t, string(r.AppendJSON(nil)))
		require.True(t, rset.Equal(r, back))
	}
}

func TestWhatIsReadIsToldAndWrittenAgain(t *testing.T) {
	r := parse(t, mixed)
	require.NoError(t, r.Check())
	require.Equal(t, "0-4", r.Ranks().String())
	require.Equal(t, 5, r.Len())
	require.EqualValues(t, 28, r.Count("core"))
	require.EqualValues(t, 4, r.Count("gpu"))
	require.EqualValues(t, 2, r.Count("nic"))
	require.Zero(t, r.Count("fpga"))
	require.EqualValues(t, 1700000000.5, r.Start())
	require.EqualValues(t, 1700003600.25, r.Expiration())
	require.EqualValues(t, 5, r.Slots())
	require.Equal(t, "b[9,1],a[05,7],c", r.Nodelist().String())
	require.Equal(t, "0-7", r.Children(3, "core").String())
	require.Equal(t, "", r.Children(0, "gpu").String())
	require.Equal(t, `{"graph":{"nodes":[],"edges":[]}}`, string(r.Scheduling()))
	for i, want := range []string{"b9", "b1", "a05", "a7", "c"} {
		host, ok := r.Host(uint32(i))
		require.True(t, ok)
		require.Equal(t, want, host)
	}
	var names []string
	for name, ranks := range r.Properties() {
		names = append(names, name+":"+ranks.String())
		ranks.Insert(77) // a copy
	}
	require.Equal(t, []string{"big:2-3", "edge:0"}, names)
	require.Equal(t, "2-3", r.Property("big").String())
	require.Equal(t, mixed, string(r.AppendJSON(nil)))
	b, err := json.Marshal(struct{ R *rset.R }{r})
	require.NoError(t, err)
	require.Equal(t, `{"R":`+mixed+`}`, string(b))
	var back struct{ R *rset.R }
	require.NoError(t, json.Unmarshal(b, &back))
	require.True(t, rset.Equal(r, back.R))
	require.Error(t, back.R.UnmarshalJSON([]byte(`{}`)))
	require.True(t, rset.Equal(r, back.R))
}

func TestTimesKeepEveryDigitAndMayBeIntegers(t *testing.T) {
	t.Log("RS-9")
	for in, want := range map[string]string{
		"1795226015.4997683": "1795226015.4997683", "1700000000": "1700000000.0", "0": "0.0", "-0.0": "0.0", "0.1": "0.10000000000000001",
	} {
		r := parse(t, `{"version":1,"execution":{"R_lite":[],"starttime":`+in+`}}`)
		require.Contains(t, string(r.AppendJSON(nil)), `"starttime":`+want+`,`)
	}
	minus, err := new(rset.R).WithTimes(rsetTime(math.Copysign(0, -1)), 0)
	require.NoError(t, err)
	require.True(t, rset.Equal(minus, nil))
	_, err = new(rset.R).WithTimes(5, 5)
	require.ErrorContains(t, err, invalidR)
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := rset.New(rset.Config{Start: 1, Expiration: rsetTime(bad)})
		require.ErrorContains(t, err, invalidR)
	}
}

func TestLimitsAreKept(t *testing.T) {
	big := `{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0"}},{"rank":"4","children":{"core":"1"}}],"nodelist":["n[0-4]"]}}`
	for want, limits := range map[string]rset.Limits{
		"136 bytes, at most 135 are allowed":                               {Bytes: len(big) - 1},
		"execution.R_lite[1]: offset 75: 2 entries, at most 1 are allowed": {Entries: 1},
	} {
		r, err := rset.ParseWithin([]byte(big), limits)
		require.Nil(t, r)
		require.ErrorIs(t, err, rset.ErrLimit)
		require.EqualError(t, err, "rset: limit exceeded: "+want)
	}
	_, err := rset.ParseWithin([]byte(big), rset.Limits{Hosts: 4})
	require.ErrorIs(t, err, hostlist.ErrLimit)
	_, err = rset.ParseWithin([]byte(big), rset.Limits{Rank: 3})
	require.ErrorIs(t, err, idset.ErrRange)
	_, err = rset.ParseWithin([]byte(big), rset.Limits{Rank: 4, Child: 1, Entries: 2, Hosts: 5, Bytes: len(big)})
	require.NoError(t, err)
	_, err = rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"16777217","children":{"core":"0"}}]}}`))
	require.ErrorIs(t, err, idset.ErrRange)
}

// RS-1.
func TestUnknownKeysAreWrittenInTheOrderOfTheirNames(t *testing.T) {
	r := parse(t, `{"z": 1, "version":1,"execution":{"y": [1, 2],"R_lite":[],"x":2},"a":{"c":0, "b":0}}`)
	require.Equal(t, `{"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0,"x":2,"y":[1,2]},"a":{"c":0,"b":0},"z":1}`,
		string(r.AppendJSON(nil)))
}

func TestAConfigurationMakesWhatItsEncodingDoes(t *testing.T) {
	c := rset.Config{
		Entries: []rset.Entry{
			{Ranks: ids(t, "2-3"), Children: map[string]*idset.Set{"core": ids(t, "0-3"), "gpu": new(idset.Set)}},
			{Ranks: ids(t, "0"), Children: map[string]*idset.Set{"gpu": ids(t, "1"), "core": ids(t, "0-3")}},
		},
		Hosts: list(t, "n[0,2-3]"), Properties: map[string]*idset.Set{"q": ids(t, "0,3"), "none": nil},
		Start: 5, Expiration: 7.5, Slots: 4,
	}
	r, err := rset.New(c)
	require.NoError(t, err)
	require.Equal(t, `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-3","gpu":"1"}},`+
		`{"rank":"2-3","children":{"core":"0-3"}}],"starttime":5.0,"expiration":7.5,"nslots":4,"nodelist":["n[0,2-3]"],`+
		`"properties":{"q":"0,3"}}}`, string(r.AppendJSON(nil)))
	require.NoError(t, r.Check())
	// Nothing of the configuration is retained.
	c.Entries[0].Children["core"].Insert(9)
	c.Properties["q"].Remove(0)
	require.NoError(t, c.Hosts.Append("x"))
	require.EqualValues(t, 12, r.Count("core"))
	require.Equal(t, "0,3", r.Property("q").String())
	require.Equal(t, 3, r.Nodelist().Len())

	for _, f := range []func(c *rset.Config){
		func(c *rset.Config) { c.Entries = []rset.Entry{{}} },
		func(c *rset.Config) { c.Entries = []rset.Entry{{Ranks: ids(t, "0")}} },
		func(c *rset.Config) { c.Entries[0].Ranks = ids(t, "16777217") },
		func(c *rset.Config) { c.Entries[1].Children["core"] = ids(t, "1048577") },
		func(c *rset.Config) { c.Entries[1].Children["co\xffre"] = ids(t, "0") },
		func(c *rset.Config) { c.Entries[0].Ranks = ids(t, "0,2") },
		func(c *rset.Config) { c.Slots = -1 },
		func(c *rset.Config) { c.Properties["q"] = ids(t, "1") },
		func(c *rset.Config) { c.Properties["a|b"] = ids(t, "0") },
		func(c *rset.Config) { c.Expiration = 5 },
	} {
		bad := c
		bad.Hosts = nil
		bad.Entries = []rset.Entry{c.Entries[0], {Ranks: ids(t, "0"), Children: map[string]*idset.Set{"gpu": ids(t, "1"), "core": ids(t, "0-3")}}}
		bad.Properties = map[string]*idset.Set{"q": ids(t, "0,3")}
		_, err := rset.New(bad)
		require.NoError(t, err)
		f(&bad)
		_, err = rset.New(bad)
		require.ErrorContains(t, err, invalidR)
	}
	_, err = rset.New(c) // a host more than ranks by now
	require.ErrorContains(t, err, badHosts)
}

// A configuration has no more entries and hosts than a text.
func TestAConfigurationHasTheLimitsOfAText(t *testing.T) {
	_, err := rset.New(rset.Config{Entries: make([]rset.Entry, 1<<20+1)})
	require.EqualError(t, err, "rset: limit exceeded: 1048577 entries, at most 1048576 are allowed")
	c := rset.Config{Entries: []rset.Entry{{Ranks: ids(t, "0-16777216"), Children: map[string]*idset.Set{"core": ids(t, "0")}}}}
	_, err = rset.New(c)
	require.NoError(t, err)
	c.Hosts = list(t, "n[0-16777215]")
	require.NoError(t, c.Hosts.Append("n16777216"))
	_, err = rset.New(c)
	require.EqualError(t, err, "rset: limit exceeded: 16777217 hosts, at most 16777216 are allowed")
}

func TestEntriesShareNothing(t *testing.T) {
	r := parse(t, mixed)
	for _, e := range slices.Collect(r.Entries()) {
		e.Ranks.Insert(99)
		e.Children["core"].Insert(99)
	}
	r.Ranks().Insert(99)
	r.Children(0, "core").Insert(99)
	require.NoError(t, r.Nodelist().Append("x"))
	r.Scheduling()[0] = 'x'
	require.Equal(t, mixed, string(r.AppendJSON(nil)))
}
