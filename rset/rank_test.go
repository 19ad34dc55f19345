package rset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/rset"
)

const holes = `{"version":1,"execution":{"R_lite":[{"rank":"3,9","children":{"core":"1,3","gpu":"2"}},` +
	`{"rank":"5","children":{"core":"0-3"}}],"expiration":9.5,"nodelist":["a,b,c"],"properties":{"p":"5,9"}},"scheduling":1}`

func TestRerankMovesEveryRankToThePlaceOfItsHost(t *testing.T) {
	r, err := parse(t, holes).Rerank(list(t, "c,a,b"))
	require.NoError(t, err)
	require.NoError(t, r.Check())
	require.Equal(t, `{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"1,3","gpu":"2"}},`+
		`{"rank":"2","children":{"core":"0-3"}}],"starttime":0.0,"expiration":9.5,"nodelist":["c,a,b"],"properties":{"p":"0,2"}}}`,
		string(r.AppendJSON(nil)))
}

func TestRerankRefusesAMapThatIsNotABijection(t *testing.T) {
	bare := `{"version":1,"execution":{"R_lite":[{"rank":"3,5","children":{"core":"0"}}]}}`
	twins := `{"version":1,"execution":{"R_lite":[{"rank":"3,5","children":{"core":"0"}}],"nodelist":["a,a"]}}`
	for _, c := range []struct{ r, hosts, err string }{
		{holes, "a,b", "rset: hosts do not match: number of hosts is 2, must be 3"},
		{holes, "a,b,c,d", "rset: hosts do not match: number of hosts is 4, must be 3"},
		{holes, "a,x,y", `rset: hosts do not match: unknown hosts: ["x" "y"]`},
		{holes, "a,b,a", `rset: hosts do not match: duplicate hosts: ["a"]`},
		{twins, "a,b", `rset: hosts do not match: duplicate hosts: ["a"]`},
		{`{"version":1,"execution":{"R_lite":[{"rank":"0-2","children":{"core":"0"}}],"nodelist":["a,a,a"]}}`, "a,b,c",
			`rset: hosts do not match: duplicate hosts: ["a"]`},
		{bare, "a,b", "rset: hosts do not match: rank 3 has no host"},
	} {
		r, err := parse(t, c.r).Rerank(list(t, c.hosts))
		require.Nil(t, r)
		require.ErrorIs(t, err, rset.ErrHosts)
		require.EqualError(t, err, c.err)
	}
	long := `{"version":1,"execution":{"R_lite":[{"rank":"0-19","children":{"core":"0"}}],"nodelist":["n[0-19]"]}}`
	_, err := parse(t, long).Rerank(list(t, "m[0-19]"))
	require.EqualError(t, err, `rset: hosts do not match: unknown hosts: ["m0" "m1" "m10" "m11" "m12" "m13" "m14" "m15"] and 12 more`)
}

func TestRemapNumbersRanksAndCoresFromZero(t *testing.T) {
	r := parse(t, holes).Remap()
	require.NoError(t, r.Check())
	require.Equal(t, `{"version":1,"execution":{"R_lite":[{"rank":"0,2","children":{"core":"0-1","gpu":"2"}},`+
		`{"rank":"1","children":{"core":"0-3"}}],"starttime":0.0,"expiration":9.5,"nodelist":["a,b,c"],"properties":{"p":"1-2"}}}`,
		string(r.AppendJSON(nil)))
	// Nodes that differ in the ids of cores only become equal.
	r = parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"4-5"}},{"rank":"7","children":{"core":"1,9"}}]}}`).Remap()
	require.Equal(t, "rank[0-1]/core[0-1]", r.String())
	require.NoError(t, r.Check())
}

func TestHostsAreAssignedInRankOrder(t *testing.T) {
	hosts := list(t, "x,y,z")
	r, err := parse(t, holes).AssignHosts(hosts)
	require.NoError(t, err)
	require.NoError(t, hosts.Append("later"))
	require.Equal(t, "x,y,z", r.Nodelist().String())
	host, ok := r.Host(9)
	require.True(t, ok)
	require.Equal(t, "z", host)
	_, ok = r.Host(4)
	require.False(t, ok)
	require.Empty(t, r.Scheduling())
	_, err = r.AssignHosts(list(t, "x"))
	require.EqualError(t, err, "rset: hosts do not match: number of hosts is 1, must be 3")
}

// RS-2: several ranks may be on one host.
func TestHostsAreFoundWithAllTheirRanks(t *testing.T) {
	t.Log("RS-2")
	r := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"1,4-5,9","children":{"core":"0"}}],"nodelist":["a,b,a,c"]}}`)
	for hosts, want := range map[string]string{"a": "1,5", "c": "9", "c,a": "1,5,9", "": ""} {
		got, err := r.RanksOf(list(t, hosts))
		require.NoError(t, err)
		require.Equal(t, want, got.String())
	}
	_, err := r.RanksOf(list(t, "c,z,x"))
	require.EqualError(t, err, `rset: hosts do not match: unknown hosts: ["x" "z"]`)
}

func TestPropertiesOfOneInstanceAreLeftOut(t *testing.T) {
	t.Log("RS-7")
	r := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"properties":{"+in":"0","out+":"0","q@x":"0"}}}`)
	out := r.WithoutLocal()
	require.Equal(t, "", out.Property("+in").String())
	require.Equal(t, "0", out.Property("out+").String())
	require.Equal(t, "0", out.Property("q@x").String())
	require.Equal(t, "0", r.Property("+in").String())
}

func TestVerifyNamesTheGravestFinding(t *testing.T) {
	expected := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0-5","children":{"core":"0-3","gpu":"0"}}],"nodelist":["n[0-5]"]}}`)
	found := func(lite, hosts string) *rset.R {
		text := fmt.Sprintf(`{"version":1,"execution":{"R_lite":[%s]`, lite)
		if hosts != "" {
			text += fmt.Sprintf(`,"nodelist":["%s"]`, hosts)
		}
		return parse(t, text+"}}")
	}
	extra := found(`{"rank":"1-2","children":{"core":"0-7","gpu":"0"}}`, "n[1-2]")
	missing := found(`{"rank":"1-2","children":{"core":"0-1,8"}}`, "n[1-2]")
	mixedUp := found(`{"rank":"1","children":{"core":"0-7","gpu":"0"}},{"rank":"2,4","children":{"core":"0"}}`, "")
	only := func(m rset.VerifyMode) rset.VerifyConfig { return rset.VerifyConfig{Default: m} }
	for _, c := range []struct {
		r        *rset.R
		cfg      rset.VerifyConfig
		err      string
		sentinel error
		ranks    string
	}{
		{expected, rset.VerifyConfig{}, "", nil, ""},
		{nil, rset.VerifyConfig{}, "", nil, ""},
		{extra, rset.VerifyConfig{}, "rank 1 (n1) also has core[4-7]", rset.ErrExtra, "1-2"},
		{extra, only(rset.VerifyAllowExtra), "", nil, ""},
		{extra, rset.VerifyConfig{Kinds: map[string]rset.VerifyMode{"core": rset.VerifyAllowExtra}}, "", nil, ""},
		{extra, only(rset.VerifyAllowMissing), "rank 1 (n1) also has core[4-7]", rset.ErrExtra, "1-2"},
		{missing, rset.VerifyConfig{}, "rank 1 (n1) lacks core[2-3],gpu0", rset.ErrMismatch, "1-2"},
		{missing, only(rset.VerifyAllowMissing), "rank 1 (n1) also has core8", rset.ErrExtra, "1-2"},
		{missing, only(rset.VerifyIgnore), "", nil, ""},
		{mixedUp, rset.VerifyConfig{}, "rank 2 (unknown) lacks core[1-3],gpu0", rset.ErrMismatch, "2,4"},
		{found(`{"rank":"7-8","children":{"core":"0"}}`, ""), rset.VerifyConfig{}, "rank 7 is not expected", rset.ErrMismatch, "7-8"},
		{found(`{"rank":"1-2","children":{"core":"0-3","gpu":"0"}}`, "n1,m2"), rset.VerifyConfig{},
			`rank 2 is on host "m2", expected "n2"`, rset.ErrMismatch, "2"},
		{found(`{"rank":"1-2","children":{"core":"0-3","gpu":"0"}}`, "n1,m2"), rset.VerifyConfig{Hosts: rset.VerifyIgnore}, "", nil, ""},
	} {
		err := c.r.Verify(expected, c.cfg)
		if c.err == "" {
			require.NoError(t, err)
			continue
		}
		want := c.sentinel.Error() + ": " + c.err
		if len(c.ranks) > 1 {
			want += " (ranks " + c.ranks + " in all)"
		}
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, c.sentinel)
	}
	require.NotErrorIs(t, extra.Verify(expected, rset.VerifyConfig{}), rset.ErrMismatch)
	require.False(t, strings.Contains(fmt.Sprint(missing.Verify(expected, rset.VerifyConfig{})), "expected n"))
}
