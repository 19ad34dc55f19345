package rset_test

import (
	"testing"

	"github.com/stretchr/testify/require"
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

// RS-5.
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
		require.ErrorContains(t, err, badHosts)
		require.EqualError(t, err, c.err)
	}
	long := `{"version":1,"execution":{"R_lite":[{"rank":"0-19","children":{"core":"0"}}],"nodelist":["n[0-19]"]}}`
	_, err := parse(t, long).Rerank(list(t, "m[0-19]"))
	require.EqualError(t, err, `rset: hosts do not match: unknown hosts: ["m0" "m1" "m10" "m11" "m12" "m13" "m14" "m15"] and 12 more`)
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
func TestRanksShareAHost(t *testing.T) {
	r := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"1,4-5,9","children":{"core":"0"}}],"nodelist":["a,b,a,c"]}}`)
	for rank, want := range map[uint32]string{1: "a", 4: "b", 5: "a", 9: "c"} {
		host, ok := r.Host(rank)
		require.True(t, ok)
		require.Equal(t, want, host)
	}
}

func TestPropertiesOfOneInstanceAreLeftOut(t *testing.T) {
	t.Log("RS-7")
	r := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"properties":{"+in":"0","out+":"0","q@x":"0"}}}`)
	out := r.WithoutLocal()
	require.Equal(t, "", out.Property("+in").String())
	require.Equal(t, "0", out.Property("out+").String())
	require.Equal(t, "0", out.Property("q@x").String())
	require.Equal(t, "0", r.Property("+in").String())
	require.Same(t, out, out.WithoutLocal(), "nothing is left to leave out")
}
