package pool_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
)

// inventory6 is the resources of RFC 28's example.
const inventory6 = `{"version":1,"execution":{"R_lite":[{"rank":"0-5","children":{"core":"0-5","gpu":"0"}}],` +
	`"starttime":0,"expiration":0,"nodelist":["host[0-5]"]}}`

// readAcquire reads a response.
func readAcquire(t require.TestingT, text string) pool.Acquire {
	a, err := pool.ParseAcquire([]byte(text))
	require.NoError(t, err, text)
	return a
}

// refuseAcquire requires that a response is refused, and where.
func refuseAcquire(t *testing.T, text string, category string, path string, offset int) {
	t.Helper()
	a, err := pool.ParseAcquire([]byte(text))
	var input *jsonobj.Fault
	require.ErrorAs(t, err, &input, text)
	require.ErrorContains(t, err, category, text)
	require.Zero(t, a)
	require.Equal(t, path, input.Path, err)
	require.Equal(t, offset, input.Offset, err)
	require.True(t, strings.HasPrefix(err.Error(), "pool: "), err)
}

// The first example of RFC 28.
func TestRFC28TheFirstResponseHasResourcesAndUp(t *testing.T) {
	a := readAcquire(t, `{"resources":`+inventory6+`,"up":"0-2"}`)
	require.Equal(t, "rank[0-5]/core[0-5],gpu0", a.Resources.String())
	require.Equal(t, "host[0-5]", a.Resources.Nodelist().String())
	require.Equal(t, pool.Change{Up: ids(t, "0-2")}, a.Change)
	refuseAcquire(t, `{"resources":`+inventory6+`}`, badAcquire, "up", 0)
	refuseAcquire(t, ` {"resources":`+inventory6+`,"down":"all"}`, badAcquire, "up", 1)

	none := readAcquire(t, `{"up":"","resources":`+inventory6+`}`)
	require.NotNil(t, none.Change.Up)
	require.True(t, none.Change.Up.IsEmpty())
}

func TestRFC28ResourcesAreAnROfRFC20(t *testing.T) {
	refuse := func(r string, category string) {
		t.Helper()
		_, err := pool.ParseAcquire([]byte(`{"up":"","resources":` + r + `}`))
		require.ErrorContains(t, err, category)
		var fault *jsonobj.Fault
		require.ErrorAs(t, err, &fault)
		require.True(t, strings.HasPrefix(fault.Path, "resources"), err)
		require.GreaterOrEqual(t, fault.Offset, 21)
	}
	refuse(`{}`, badAcquire)
	refuse(`"0-5"`, badAcquire)
	refuse(`null`, badAcquire)
	refuse(strings.Replace(inventory6, `"version":1`, `"version":2`, 1), badAcquire)
	refuse(strings.Replace(inventory6, `host[0-5]`, `host[0-4]`, 1), badAcquire)
	refuse(strings.Replace(inventory6, `"host[0-5]"`, `"host[0-99999999]"`, 1), tooMuch)

	_, err := pool.ParseAcquire([]byte(`{"up":"","resources":{"version":1,"execution":{"R_lite":[{}]}}}`))
	require.ErrorContains(t, err, "resources.execution.R_lite[0].rank: offset 57: key is missing")
}

// What flux-core sends if all nodes are excluded.
func TestRFC28ResourcesMayBeNone(t *testing.T) {
	a := readAcquire(t, `{"resources":{"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0,"nodelist":[""]}},"up":""}`)
	require.NotNil(t, a.Resources)
	require.True(t, a.Resources.IsEmpty())
	require.Equal(t, pool.Change{Up: new(idset.Set)}, a.Change)
}

// The second example of RFC 28, with the colon and the comma that it lacks.
func TestRFC28LaterResponsesTellWhatChanges(t *testing.T) {
	a := readAcquire(t, `{ "up": "3-6", "down": "2", "property-add": { "foo": "0-1" }, "property-remove": { "bar": "3" } }`)
	require.Nil(t, a.Resources)
	require.Equal(t, pool.Change{
		Up: ids(t, "3-6"), Down: ids(t, "2"),
		AddProperties:    map[string]*idset.Set{"foo": ids(t, "0-1")},
		RemoveProperties: map[string]*idset.Set{"bar": ids(t, "3")},
	}, a.Change)
}

func TestRFC28EachKeyMayComeAlone(t *testing.T) {
	at := eventlog.Timestamp(1.5)
	for text, want := range map[string]pool.Change{
		`{"up":"3"}`:                         {Up: ids(t, "3")},
		`{"down":"[2-4]"}`:                   {Down: ids(t, "2-4")},
		`{"shrink":"2,4"}`:                   {Shrink: ids(t, "2,4")},
		`{"property-add":{"foo":"1"}}`:       {AddProperties: map[string]*idset.Set{"foo": ids(t, "1")}},
		`{"property-remove":{"foo":"1"}}`:    {RemoveProperties: map[string]*idset.Set{"foo": ids(t, "1")}},
		`{"property-add":{}}`:                {AddProperties: map[string]*idset.Set{}},
		`{"expiration":1.5}`:                 {Expiration: &at},
		`{"expiration":1.5,"later":{"a":1}}`: {Expiration: &at},
	} {
		a := readAcquire(t, text)
		require.Nil(t, a.Resources)
		require.Equal(t, want, a.Change, text)
	}
}

func TestRFC28AResponseHasAtLeastOneKey(t *testing.T) {
	refuseAcquire(t, `{}`, badAcquire, "", 0)
	refuseAcquire(t, ` {"later":1}`, badAcquire, "", 0)
	refuseAcquire(t, `[]`, badAcquire, "", 0)
	refuseAcquire(t, `null`, badAcquire, "", 0)
	refuseAcquire(t, ``, badAcquire, "", 0)
}

func TestRFC28SetsAreIdsetsOfRFC22(t *testing.T) {
	for _, key := range []string{"up", "down", "shrink"} {
		for _, value := range []string{`1`, `null`, `["1"]`, `"1-"`, `"1,1"`, `"01"`, `" 1"`, `"ALL"`, `"16777217"`, `"4294967296"`} {
			refuseAcquire(t, fmt.Sprintf(`{%q:%s}`, key, value), badAcquire, key, len(key)+4)
		}
		readAcquire(t, fmt.Sprintf(`{%q:"16777216"}`, key))
	}
}

func TestRFC28PropertiesAreThoseOfRFC20(t *testing.T) {
	for _, key := range []string{"property-add", "property-remove"} {
		n := len(key) + 4
		refuseAcquire(t, fmt.Sprintf(`{%q:"foo"}`, key), badAcquire, key, n)
		refuseAcquire(t, fmt.Sprintf(`{%q:null}`, key), badAcquire, key, n)
		refuseAcquire(t, fmt.Sprintf(`{%q:{"foo":1}}`, key), badAcquire, key+".foo", n+7)
		refuseAcquire(t, fmt.Sprintf(`{%q:{"foo":"x"}}`, key), badAcquire, key+".foo", n+7)
		refuseAcquire(t, fmt.Sprintf(`{%q:{"foo":"all"}}`, key), badAcquire, key+".foo", n+7)
		refuseAcquire(t, fmt.Sprintf(`{%q:{"^foo":"1"}}`, key), badAcquire, key+`."^foo"`, n+8)
		refuseAcquire(t, fmt.Sprintf(`{%q:{"":"1"}}`, key), badAcquire, key+`.""`, n+4)
		refuseAcquire(t, fmt.Sprintf(`{%q:{"foo":"16777217"}}`, key), badAcquire, key+".foo", n+7)
		refuseAcquire(t, fmt.Sprintf(`{%q:{"foo":"1","foo":"2"}}`, key), badAcquire, "", n+11)
	}
}

func TestRFC28ExpirationIsAFloatingPointTime(t *testing.T) {
	for text, want := range map[string]eventlog.Timestamp{`0`: 0, `0.0`: 0, `-0.0`: 0, `42`: 42, `1.7e9`: 1.7e9, `1769078400.1234567`: 1769078400.1234567} {
		got := readAcquire(t, `{"expiration":`+text+`}`).Change.Expiration
		require.Equal(t, want, *got)
		require.False(t, math.Signbit(float64(*got)), text)
	}
	for _, text := range []string{`-1`, `"1"`, `null`, `-1e-300`} {
		refuseAcquire(t, `{"expiration":`+text+`}`, badAcquire, "expiration", 14)
	}
	refuseAcquire(t, `{"expiration":1e999}`, badAcquire, "", 14)
}

// A set of ranks may be named "all" where there are ranks that it can mean.
// RS-6.
func TestAllIsTheRanksOfTheResourcesWithTheirHoles(t *testing.T) {
	holes := strings.NewReplacer(`"0-5"`, `"0,3-4"`, "host[0-5]", "host[0-2]").Replace(inventory6)
	for _, text := range []string{`{"up":"all","resources":` + holes + `}`, `{"resources":` + holes + `,"up":"all"}`} {
		a := readAcquire(t, text)
		require.Equal(t, "0,3-4", a.Change.Up.String())
	}
	a := readAcquire(t, `{"resources":`+holes+`,"up":"","down":"all"}`)
	require.Equal(t, "", a.Change.Up.String())
	require.Equal(t, "0,3-4", a.Change.Down.String())
	a.Change.Down.Insert(9)
	require.Equal(t, "0,3-4", a.Resources.Ranks().String())
	for _, key := range []string{"up", "down", "shrink"} {
		refuseAcquire(t, fmt.Sprintf(`{%q:"all"}`, key), badAcquire, key, len(key)+4)
	}
}

func TestAResponseIsOneJSONValueWithEachKeyOnce(t *testing.T) {
	refuseAcquire(t, `{"up":"1","up":"2"}`, badAcquire, "", 10)
	refuseAcquire(t, `{"up":"1"} x`, badAcquire, "", 11)
	refuseAcquire(t, `{"up":"1"`, badAcquire, "", 9)
	refuseAcquire(t, "{\"up\":\"\xff\"}", badAcquire, "", 7)
	refuseAcquire(t, `{"a":`+strings.Repeat("[", 3000)+strings.Repeat("]", 3000)+`}`, tooMuch, "", 2052)
}

func TestAResponseThatIsTooLongIsRefusedUnread(t *testing.T) {
	if testing.Short() {
		t.Skip("needs 68 MiB")
	}
	text := make([]byte, pool.MaxAcquire+1)
	refuseAcquire(t, string(text), tooMuch, "", 0)
	refuseAcquire(t, string(text[1:]), badAcquire, "", 0)
}

// FuzzAcquire: no panic; what is read is JSON with ranks within the limit, and makes a pool
// that keeps its rules; what is refused is refused with an error of this package.
func FuzzAcquire(f *testing.F) {
	for _, text := range []string{
		`{"resources":` + inventory6 + `,"up":"0-2"}`, `{"resources":` + inventory6 + `,"up":"all","down":"all"}`,
		`{"up":"3-6","down":"2","shrink":"7","property-add":{"foo":"0-1"},"property-remove":{"bar":"3"},"expiration":1.5}`,
		`{"up":"all"}`, `{}`, `{"up":"1","x":[1,{}],"x2":null}`, `{"expiration":1e400}`, `{"property-add":{"foo":"1","foo":"2"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := pool.ParseAcquire(text)
		if err != nil {
			require.Zero(t, a)
			requireInputError(t, err, badAcquire)
			return
		}
		require.True(t, json.Valid(text))
		for _, set := range []*idset.Set{a.Change.Up, a.Change.Down, a.Change.Shrink} {
			most, _ := set.Max()
			require.LessOrEqual(t, most, uint32(rset.MaxRank))
		}
		if a.Resources == nil {
			return
		}
		p, err := pool.New(a.Resources, pool.Config{})
		require.NoError(t, err)
		_ = p.Update(a.Change)
		require.NoError(t, p.Check())
	})
}
