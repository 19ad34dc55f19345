package pool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/pool"
)

// cluster is eight ranks, of which 0 and 1 have foo, 1 and 2 have bar, even
// ones have ssd, and 3 has huge and slowgpu. There is no rank 6.
func cluster(t require.TestingT) *pool.Fake {
	hosts, err := hostlist.Parse("host[0-5,7-8]")
	require.NoError(t, err)
	return &pool.Fake{
		All: ids(t, "0-5,7-8"),
		Properties: map[string]*idset.Set{
			"foo": ids(t, "0-1"), "bar": ids(t, "1-2"), "ssd": ids(t, "0,2,4,8"), "huge": ids(t, "3"), "slowgpu": ids(t, "3"),
		},
		Hosts: hosts,
	}
}

// ids parses a set.
func ids(t require.TestingT, s string) *idset.Set {
	set, err := idset.Parse(s)
	require.NoError(t, err)
	return set
}

// requireMatch requires which ranks of the cluster constraints match.
func requireMatch(t *testing.T, want, constraints string) {
	t.Helper()
	c := cluster(t)
	got, err := c.Match([]byte(constraints))
	require.NoError(t, err, constraints)
	require.Equal(t, want, got.String(), constraints)
	require.Equal(t, "0-5,7-8", c.All.String(), "the inventory is as it was")
	for name, ranks := range cluster(t).Properties {
		require.Equal(t, ranks.String(), c.Properties[name].String(), "the inventory is as it was")
	}
}

// refuseConstraint requires that constraints are refused, and where.
func refuseConstraint(t *testing.T, constraints string, category string, path string, offset int) {
	t.Helper()
	s := specOf(t, shape("slot", "1", vertex("core", "1")), constraints)
	whole := "attributes.system.constraints"
	if path != "" {
		whole += "." + path
	}
	err := refuseRequest(t, s, category, whole)
	require.Equal(t, offset, err.Offset, err)
	require.Less(t, len(err.Error()), 400)
}

func TestRFC31AConstraintIsAnObjectOfOperatorsWithArrays(t *testing.T) {
	requireMatch(t, "0,2,4,8", `{"properties":["ssd"]}`)
	refuseConstraint(t, `{"and":[[]]}`, badRequest, "and[0]", 8)
	refuseConstraint(t, `{"and":[{"or":["ssd"]}]}`, badRequest, "and[0].or[0]", 15)
	refuseConstraint(t, `{"and":[null]}`, badRequest, "and[0]", 8)
	for _, operator := range []string{"properties", "hostlist", "ranks", "not", "or", "and"} {
		for _, operand := range []string{`"ssd"`, `{}`, `null`, `1`, `true`} {
			refuseConstraint(t, fmt.Sprintf(`{%q:%s}`, operator, operand), badRequest, operator, len(operator)+4)
		}
	}
	for _, operator := range []string{"properties", "hostlist", "ranks"} {
		for _, value := range []string{`{}`, `null`, `1`, `true`, `[]`} {
			refuseConstraint(t, fmt.Sprintf(`{%q:["1",%s]}`, operator, value), badRequest, operator+"[1]", len(operator)+9)
		}
	}
}

func TestRFC31PropertiesAreRequiredAndThoseWithACaretExcluded(t *testing.T) {
	requireMatch(t, "0-1", `{"properties":["foo"]}`)
	requireMatch(t, "1", `{"properties":["foo","bar"]}`)
	requireMatch(t, "0", `{"properties":["foo","^bar"]}`)
	requireMatch(t, "3-5,7-8", `{"properties":["^foo","^bar"]}`)
	requireMatch(t, "", `{"properties":["foo","^foo"]}`)
	requireMatch(t, "", `{"properties":["unknown"]}`)
	requireMatch(t, "0-5,7-8", `{"properties":["^unknown"]}`)
	requireMatch(t, "", `{"properties":["FOO"]}`)
	requireMatch(t, "", `{"properties":["fo"]}`)
}

func TestRFC31PropertiesThatHaveNoSuchNameAreRefused(t *testing.T) {
	for _, name := range []string{``, `^`, `^^foo`, `a^b`, `a!`, `a&b`, `'a`, "`a", `a|b`, `(a`, `a)`} {
		refuseConstraint(t, fmt.Sprintf(`{"properties":["foo",%q]}`, name), badRequest, "properties[1]", 21)
	}
	refuseConstraint(t, `{"properties":["\""]}`, badRequest, "properties[0]", 15)
	refuseConstraint(t, `{"properties":["a\u0000"]}`, badRequest, "properties[0]", 15)
	requireMatch(t, "", `{"properties":["+a@b.c/d e"]}`)
}

// RFC 31 does not say so; instances let the name of a host stand for a
// property that it has.
func TestTheNameOfAHostIsAPropertyOfItsRanks(t *testing.T) {
	requireMatch(t, "7", `{"properties":["host7"]}`)
	requireMatch(t, "0-5,8", `{"properties":["^host7"]}`)
	requireMatch(t, "", `{"properties":["host[7-8]"]}`)
	requireMatch(t, "", `{"properties":["host07"]}`)
	c := cluster(t)
	c.Properties["host7"] = ids(t, "1")
	got, err := c.Match([]byte(`{"properties":["host7"]}`))
	require.NoError(t, err)
	require.Equal(t, "1,7", got.String())
	require.Equal(t, "1", c.Properties["host7"].String())
}

func TestRFC31HostlistIsOneOrMoreSetsOfHosts(t *testing.T) {
	requireMatch(t, "0-1", `{"hostlist":["host[0-1]"]}`)
	requireMatch(t, "0-1,5,8", `{"hostlist":["host[0-1]","host8,host5"]}`)
	requireMatch(t, "", `{"hostlist":["host6"]}`)
	requireMatch(t, "", `{"hostlist":["host00","other3","host","host6-ib"]}`)
	requireMatch(t, "0-5,7-8", `{"hostlist":["host[0-999999]"]}`)
	requireMatch(t, "3", `{"hostlist":["host3,host3","host3"]}`)
	requireMatch(t, "", `{"hostlist":[""]}`)
	requireMatch(t, "", `{"hostlist":[]}`)
	refuseConstraint(t, `{"hostlist":["host[1"]}`, badRequest, "hostlist[0]", 13)
	refuseConstraint(t, `{"hostlist":["host1","host[1","2]"]}`, badRequest, "hostlist[1]", 21)

	// Where hosts are not known, none is there.
	c := cluster(t)
	c.Hosts = nil
	got, err := c.Match([]byte(`{"or":[{"hostlist":["host1"]},{"properties":["host2"]}]}`))
	require.NoError(t, err)
	require.True(t, got.IsEmpty())
}

func TestRFC31RanksAreOneOrMoreIdsets(t *testing.T) {
	requireMatch(t, "0", `{"ranks":["0"]}`)
	requireMatch(t, "0-2,8", `{"ranks":["0-1","1-2","[8]"]}`)
	requireMatch(t, "5,7", `{"ranks":["5-7"]}`)
	requireMatch(t, "8", `{"ranks":["8-2147483647"]}`)
	requireMatch(t, "", `{"ranks":["6","100"]}`)
	requireMatch(t, "", `{"ranks":[""]}`)
	requireMatch(t, "", `{"ranks":[]}`)
	refuseConstraint(t, `{"ranks":["1-"]}`, badRequest, "ranks[0]", 10)
	refuseConstraint(t, `{"ranks":["1","all"]}`, badRequest, "ranks[1]", 14)
	refuseConstraint(t, `{"ranks":["2147483648"]}`, badRequest, "ranks[0]", 10)
}

func TestRFC31NotNegatesItsValue(t *testing.T) {
	requireMatch(t, "0,2-5,7-8", `{"not":[{"properties":["foo","bar"]}]}`)
	requireMatch(t, "1", `{"not":[{"not":[{"properties":["foo","bar"]}]}]}`)
	// Instances negate several values together.
	requireMatch(t, "0,2-5,7-8", `{"not":[{"properties":["foo"]},{"properties":["bar"]}]}`)
	requireMatch(t, "", `{"not":[{}]}`)
}

func TestRFC31OrMatchesWhatAnyValueMatches(t *testing.T) {
	requireMatch(t, "0-2", `{"or":[{"properties":["foo"]},{"properties":["bar"]}]}`)
	requireMatch(t, "2", `{"or":[{"properties":["foo","unknown"]},{"ranks":["2"]}]}`)
	requireMatch(t, "", `{"or":[{"ranks":["6"]},{"properties":["unknown"]}]}`)
	requireMatch(t, "0-5,7-8", `{"or":[{"ranks":["6"]},{}]}`)
}

func TestRFC31AndMatchesWhatAllValuesMatch(t *testing.T) {
	requireMatch(t, "1", `{"and":[{"properties":["foo"]},{"properties":["bar"]}]}`)
	requireMatch(t, "0", `{"and":[{"hostlist":["host[0-1]"]},{"properties":["ssd"]}]}`)
	requireMatch(t, "", `{"and":[{"ranks":["0"]},{"ranks":["1"]}]}`)
}

func TestRFC31OrAndAndWithoutValuesMatchEverythingAndNotNothing(t *testing.T) {
	requireMatch(t, "0-5,7-8", `{"or":[]}`)
	requireMatch(t, "0-5,7-8", `{"and":[]}`)
	requireMatch(t, "", `{"not":[]}`)
	requireMatch(t, "0-5,7-8", `{"not":[{"not":[]}]}`)
	requireMatch(t, "0-5,7-8", `{"properties":[]}`)
}

// RFC 31 does not say what several operators in one object mean, nor none:
// instances take all of them together.
func TestSeveralOperatorsInOneObjectMustAllMatch(t *testing.T) {
	requireMatch(t, "0", `{"properties":["foo"],"ranks":["0,2"]}`)
	requireMatch(t, "2", `{"not":[{"ranks":["0"]}],"or":[{"ranks":["0"]},{"ranks":["2"]}]}`)
	requireMatch(t, "0-5,7-8", `{}`)
	requireMatch(t, "0-5,7-8", ` { } `)
}

func TestRFC31OperatorsThatAreNotSupportedAreRefused(t *testing.T) {
	refuseConstraint(t, `{"xor":[]}`, badRequest, "xor", 7)
	refuseConstraint(t, `{"and":[{"or.":[]}]}`, badRequest, "and[0].or.", 15)
	refuseConstraint(t, `{"and":[{"not":[{"AND":[]}]}]}`, badRequest, "and[0].not[0].AND", 23)
	refuseConstraint(t, `{"":[]}`, badRequest, `""`, 4)
	refuseConstraint(t, `{"a b":[]}`, badRequest, `"a b"`, 7)
	refuseConstraint(t, `{"ranks":["0"],"required":[]}`, badRequest, "required", 26)
}

// The examples of RFC 31.
func TestRFC31Examples(t *testing.T) {
	for constraints, want := range map[string]string{
		`{ "properties": [ "ssd" ] }`:                                                 "0,2,4,8",
		`{ "properties": [ "^slowgpu" ] }`:                                            "0-2,4-5,7-8",
		`{ "not": [ { "properties": [ "slowgpu" ] } ] }`:                              "0-2,4-5,7-8",
		`{ "or": [ { "properties": [ "ssd" ] }, { "properties": [ "huge" ] } ] }`:     "0,2-4,8",
		`{ "hostlist": [ "host[0-1]" ] }`:                                             "0-1",
		`{ "not": [ { "hostlist": [ "host[0-1]" ] } ] }`:                              "2-5,7-8",
		`{ "and": [ { "hostlist": [ "host[0-1]" ] }, { "properties": [ "ssd" ] } ] }`: "0",
		`{ "ranks": [ "0" ] }`:                                                        "0",
		`{ "not": [{ "properties": [ "foo", "bar" ] }] }`:                             "0,2-5,7-8",
		`{ "or": [{ "properties": [ "foo" ]}, { "properties": [ "bar" ]}] }`:          "0-2",
	} {
		requireMatch(t, want, constraints)
	}
}

func TestConstraintsBeyondALimitAreRefused(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat(`{"not":[`, n-1) + `{"ranks":["0"]}` + strings.Repeat(`]}`, n-1)
	}
	requireMatch(t, "1-5,7-8", nested(pool.MaxConstraintDepth))
	deep := cluster(t)
	_, err := deep.Match([]byte(nested(pool.MaxConstraintDepth + 1)))
	require.ErrorContains(t, err, tooMuch)
	var input *jsonobj.Fault
	require.ErrorAs(t, err, &input)
	require.Equal(t, 8*pool.MaxConstraintDepth, input.Offset)
	require.LessOrEqual(t, len(input.Path), 128)

	// One operator and its properties.
	properties := func(n int) string { return `{"properties":["foo"` + strings.Repeat(`,"foo"`, n-2) + `]}` }
	requireMatch(t, "0-1", properties(pool.MaxTerms))
	_, err = deep.Match([]byte(properties(pool.MaxTerms + 1)))
	require.ErrorContains(t, err, tooMuch)

	ranks := func(n int) string { return `{"ranks":["3"]` + strings.Repeat(" ", n-15) + `}` }
	require.Equal(t, pool.MaxConstraintBytes, len(ranks(pool.MaxConstraintBytes)))
	requireMatch(t, "3", ranks(pool.MaxConstraintBytes))
	_, err = deep.Match([]byte(ranks(pool.MaxConstraintBytes + 1)))
	require.ErrorContains(t, err, tooMuch)

	// Hosts that must be written out one by one, in one value and in several.
	spelled := func(n int) string { return fmt.Sprintf(`"x[1-%d]-ib"`, n) }
	half := pool.MaxSpelled / 2
	requireMatch(t, "", `{"hostlist":[`+spelled(pool.MaxSpelled)+`]}`)
	requireMatch(t, "", `{"or":[{"hostlist":[`+spelled(half)+`]},{"hostlist":[`+spelled(half)+`]}]}`)
	for _, values := range []string{spelled(pool.MaxSpelled + 1), spelled(half) + "," + spelled(half+1), spelled(pool.MaxSpelled) + `,"a"`} {
		_, err = deep.Match([]byte(`{"hostlist":[` + values + `]}`))
		require.ErrorContains(t, err, tooMuch, values)
	}
	requireMatch(t, "", `{"hostlist":["x[1-524288]","y[1-524288]"]}`)
	for _, more := range []string{`{"hostlist":["x[1-524288]","y[1-524289]"]}`, `{"and":[{"hostlist":["x[1-524288]"]},{"hostlist":["x[1-524289]"]}]}`} {
		_, err = deep.Match([]byte(more))
		require.ErrorContains(t, err, tooMuch)
	}
	_, err = deep.Match([]byte(`{"hostlist":["x[1-1048577]"]}`))
	require.ErrorContains(t, err, tooMuch)
}

func TestConstraintsThatAreNoJSONAreRefused(t *testing.T) {
	c := cluster(t)
	for text, offset := range map[string]int{``: 0, `[]`: 0, `{"and":[`: 8, `{"and":[]}x`: 10, `{"and":[],"and":[]}`: 10, `{"and":[{"or":[],"or":[]}]}`: 17} {
		_, err := c.Match([]byte(text))
		var input *jsonobj.Fault
		require.ErrorAs(t, err, &input, text)
		require.ErrorIs(t, err, pool.ErrRequest)
		require.Equal(t, offset, input.Offset, text)
	}
	got, err := c.Match(nil)
	require.NoError(t, err)
	require.True(t, got.Equal(c.All))
}
