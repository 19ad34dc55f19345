package rset_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/rset"
)

// RFC 20, Version: the value of version is 1.
func TestRFC20Version(t *testing.T) {
	require.NoError(t, new(rset.R).UnmarshalJSON([]byte(`{"version":1,"execution":{"R_lite":[]}}`)))
	for _, version := range []string{"0", "2", "-1", "1.0", `"1"`, "null", "true"} {
		require.ErrorContains(t, new(rset.R).UnmarshalJSON([]byte(`{"version":`+version+`,"execution":{"R_lite":[]}}`)), invalidR)
	}
}

// RFC 20, Execution: R_lite is required, each entry has rank and children, both
// ids in idset format; other keys may come.
func TestRFC20Execution(t *testing.T) {
	r := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"[0-1]","node":"x","children":{"core":"0,1-2","gpu":"3","later":"0"}}],"later":{}}}`)
	require.Equal(t, "rank[0-1]/core[0-2],gpu3,later0", r.String())
	require.Contains(t, string(r.AppendJSON(nil)), `"later":{}`)
}

// RFC 20, starttime and expiration: either may be unset, and expiration is
// after starttime where both are set.
func TestRFC20Times(t *testing.T) {
	for times, ok := range map[string]bool{
		``: true, `,"starttime":5`: true, `,"expiration":5`: true, `,"expiration":5.000001,"starttime":5`: true,
		`,"starttime":5,"expiration":0`: true, `,"starttime":0.0,"expiration":5`: true, `,"starttime":5,"expiration":5`: false, `,"starttime":6,"expiration":5`: false,
	} {
		_, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[]` + times + `}}`))
		require.Equal(t, ok, err == nil, times)
	}
}

// RFC 20, nodelist: entries are hosts or hostlists, and all together have a host for each rank,
// in the order of ranks.
func TestRFC20Nodelist(t *testing.T) {
	r := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"3,5","children":{"core":"0"}},{"rank":"0-1","children":{"core":"0"}}],"nodelist":["z","n[2-3]","a"]}}`)
	for rank, want := range map[uint32]string{0: "z", 1: "n2", 3: "n3", 5: "a"} {
		host, _ := r.Host(rank)
		require.Equal(t, want, host)
	}
	for _, entry := range []string{`1`, `null`, `["z"]`, `"n[2-"`, `"a b"`, `"n[2-3],b,c"`} {
		_, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],"nodelist":[` + entry + `]}}`))
		require.ErrorContains(t, err, "execution.nodelist", entry)
	}
}

// RFC 20, nslots: it is above 0. One of 0 is read as if it were absent.
func TestRFC20Slots(t *testing.T) {
	r := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"nslots":0}}`)
	require.NotContains(t, string(r.AppendJSON(nil)), "nslots")
	_, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[],"nslots":-1}}`))
	require.ErrorContains(t, err, invalidR)
}

// RFC 20, properties: ranks in idset format, of names in UTF-8 without some characters. "@" and
// a "+" in front change nothing of which ranks have the property.
func TestRFC20Properties(t *testing.T) {
	read := func(properties string) (*rset.R, error) {
		return rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0"}}],"properties":{` + properties + `}}}`))
	}
	r, err := read(`"amd-mi50@gpu":"0-2","amd-mi50":"[1,3]","+batch":"2","é":"0"`)
	require.NoError(t, err)
	for name, want := range map[string]string{"amd-mi50@gpu": "0-2", "amd-mi50": "1,3", "+batch": "2", "é": "0", "gpu": "", "batch": ""} {
		require.Equal(t, want, r.Property(name).String(), name)
	}
	for _, name := range []string{"!", "&", "'", `\"`, "^", "`", "|", "(", ")"} {
		_, err := read(`"a` + name + `b":"0"`)
		require.ErrorContains(t, err, "invalid property name", name)
	}
	_, err = read("\"\xff\":\"0\"")
	require.ErrorContains(t, err, "invalid UTF-8")
	for _, ranks := range []string{`"4"`, `"0-4"`, `"1-"`, `"all"`, `1`, `null`, `["0"]`} {
		_, err := read(`"p":` + ranks)
		require.ErrorContains(t, err, "execution.properties.p", ranks)
	}
}
