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
		`,"starttime":5,"expiration":0`: true, `,"starttime":5,"expiration":5`: false, `,"starttime":6,"expiration":5`: false,
	} {
		_, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[]` + times + `}}`))
		require.Equal(t, ok, err == nil, times)
	}
}
