package pool_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/pool"
)

// naive is the cluster of a Fake, rank by rank.
type naive struct {
	host       map[uint32]string
	properties map[string]map[uint32]bool
}

func naiveOf(f *pool.Fake) naive {
	n := naive{host: map[uint32]string{}, properties: map[string]map[uint32]bool{}}
	i := 0
	for rank := range f.All.All() {
		if f.Hosts != nil {
			n.host[rank], _ = f.Hosts.Nth(i)
		}
		i++
	}
	for name, ranks := range f.Properties {
		n.properties[name] = map[uint32]bool{}
		for rank := range ranks.All() {
			n.properties[name][rank] = true
		}
	}
	return n
}

// match reports whether a rank satisfies a decoded constraint.
func (n naive) match(c any, rank uint32) bool {
	for operator, values := range c.(map[string]any) {
		if !n.term(operator, values.([]any), rank) {
			return false
		}
	}
	return true
}

func (n naive) term(operator string, values []any, rank uint32) bool {
	matches := func(v any) bool { return n.match(v, rank) }
	misses := func(v any) bool { return !n.match(v, rank) }
	switch operator {
	case "properties":
		return !slices.ContainsFunc(values, func(v any) bool {
			name, not := strings.CutPrefix(v.(string), "^")
			have := n.properties[name][rank] || n.host[rank] == name
			return have == not
		})
	case "hostlist":
		return slices.ContainsFunc(values, func(v any) bool {
			list, err := hostlist.Parse(v.(string))
			_, found := list.Find(n.host[rank])
			return err == nil && found
		})
	case "ranks":
		return slices.ContainsFunc(values, func(v any) bool {
			set, err := idset.Parse(v.(string))
			return err == nil && set.Contains(rank)
		})
	case "and":
		return !slices.ContainsFunc(values, misses)
	case "or":
		return len(values) == 0 || slices.ContainsFunc(values, matches)
	case "not":
		return slices.ContainsFunc(values, misses)
	}
	panic(operator)
}

// requireNaive requires that constraints match what they match rank by rank.
func requireNaive(t require.TestingT, f *pool.Fake, constraints []byte) *idset.Set {
	got, err := f.Match(constraints)
	require.NoError(t, err, "%s", constraints)
	var decoded any
	require.NoError(t, json.Unmarshal(constraints, &decoded))
	n, want := naiveOf(f), new(idset.Set)
	for rank := range f.All.All() {
		if n.match(decoded, rank) {
			want.Insert(rank)
		}
	}
	require.Equal(t, want.String(), got.String(), "%s", constraints)
	return got
}

// genSet draws ranks, some of them far off.
func genSet() *rapid.Generator[*idset.Set] {
	return rapid.Custom(func(t *rapid.T) *idset.Set {
		set := new(idset.Set)
		for range rapid.IntRange(0, 4).Draw(t, "ranges") {
			first := rapid.Uint32Range(0, 40).Draw(t, "first")
			set.InsertRange(first, first+rapid.Uint32Range(0, 9).Draw(t, "more"))
		}
		return set
	})
}

// genHost draws names of hosts that differ in prefix, width and id.
func genHost() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		format := rapid.SampledFrom([]string{"a%d", "a%02d", "a%03d", "b%d", "a%dx", "%d", "a", "a123456789012345678%d"}).Draw(t, "format")
		if format == "a" {
			return format
		}
		return fmt.Sprintf(format, rapid.SampledFrom([]int{0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 98, 99, 100, 101}).Draw(t, "id"))
	})
}

// genHosts draws a hostlist string.
func genHosts() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		hosts := rapid.SliceOfN(genHost(), 0, 3).Draw(t, "hosts")
		if rapid.Bool().Draw(t, "range") {
			hosts = append(hosts, rapid.SampledFrom([]string{"a[0-20]", "a[07-101]", "b[1-8,10]", "[0-9]", "a[001-100]", "a[8-11]x"}).Draw(t, "range of hosts"))
		}
		return strings.Join(hosts, ",")
	})
}

// genFake draws an inventory. A host may have several ranks.
func genFake() *rapid.Generator[*pool.Fake] {
	return rapid.Custom(func(t *rapid.T) *pool.Fake {
		f := &pool.Fake{All: genSet().Draw(t, "ranks"), Properties: map[string]*idset.Set{}}
		for _, name := range []string{"foo", "bar", "a1"} {
			f.Properties[name] = idset.Intersect(f.All, genSet().Draw(t, name))
		}
		if rapid.Bool().Draw(t, "with hosts") {
			f.Hosts = new(hostlist.List)
			prefix := rapid.SampledFrom([]string{"a", "a0", "b"}).Draw(t, "prefix")
			for i := range f.All.Len() {
				name := fmt.Sprint(prefix, i)
				if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
					name = genHost().Draw(t, "host")
				}
				require.NoError(t, f.Hosts.Append(name))
			}
		}
		return f
	})
}

// genConstraint draws a constraint of at most so many levels.
func genConstraint(t *rapid.T, levels int) map[string]any {
	c := map[string]any{}
	for range rapid.SampledFrom([]int{1, 1, 1, 1, 2, 0}).Draw(t, "operators") {
		operators := []string{"properties", "hostlist", "ranks", "and", "or", "not"}
		if levels == 0 {
			operators = operators[:3]
		}
		operator := rapid.SampledFrom(operators).Draw(t, "operator")
		values := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "values") {
			switch operator {
			case "properties":
				values = append(values, rapid.SampledFrom([]string{"foo", "bar", "^foo", "^bar", "a1", "^a1", "b3", "^a07", "none"}).Draw(t, "property"))
			case "hostlist":
				values = append(values, genHosts().Draw(t, "hostlist"))
			case "ranks":
				values = append(values, genSet().Draw(t, "ranks").String())
			default:
				values = append(values, genConstraint(t, levels-1))
			}
		}
		c[operator] = values
	}
	return c
}

func TestConstraintsMatchAsRankByRankAndKeepTheLawsOfLogic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := genFake().Draw(t, "inventory")
		before := f.All.String()
		match := func(c any) string {
			text, err := json.Marshal(c)
			require.NoError(t, err)
			return requireNaive(t, f, text).String()
		}
		a, b := genConstraint(t, 3), genConstraint(t, 2)
		op := func(operator string, values ...any) map[string]any { return map[string]any{operator: values} }
		all := ids(t, before)

		matched := ids(t, match(a))
		require.Equal(t, idset.Difference(all, matched).String(), match(op("not", a)))
		require.Equal(t, matched.String(), match(op("not", op("not", a))))
		require.Equal(t, idset.Union(matched, ids(t, match(b))).String(), match(op("or", a, b)))
		require.Equal(t, idset.Intersect(matched, ids(t, match(b))).String(), match(op("and", a, b)))
		require.Equal(t, match(op("or", op("not", a), op("not", b))), match(op("not", op("and", a, b))))
		require.Equal(t, match(op("and", op("not", a), op("not", b))), match(op("not", op("or", a, b))))
		require.Equal(t, match(op("and", b, a)), match(op("and", a, b)))
		require.Equal(t, before, f.All.String())
	})
}

// Ranges of hosts that lie in each other, on ranks in another order.
func TestHostsThatHaveSeveralRanksAreFoundOnAll(t *testing.T) {
	hosts, err := hostlist.Parse("a[0-20],a[3-5],b7,a[2-9],a,a0")
	require.NoError(t, err)
	f := &pool.Fake{All: ids(t, "100-102,200-300"), Hosts: hosts}
	for text, want := range map[string]string{
		"a[10-12]":    "207-209",
		"a4":          "201,219,224",
		"a20":         "217",
		"a[21-99]":    "",
		"a":           "230",
		"a0,a00,b07":  "100,231",
		"b[0-9],a[4]": "201,219,221,224",
	} {
		list, err := hostlist.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, f.RanksOfHosts(list).String(), text)
	}
}

// A host that is named over and over, where it has many ranks: what it costs
// follows both, not one times the other.
func TestAHostThatIsNamedOftenCostsAsOnce(t *testing.T) {
	const n = 4096
	f := &pool.Fake{All: new(idset.Set), Hosts: new(hostlist.List)}
	f.All.InsertRange(0, n-1)
	for range n {
		require.NoError(t, f.Hosts.Append("n0"))
	}
	often := []byte(`{"hostlist":["n0","` + strings.Repeat("n0,n00,", n) + `n0"]}`)
	cost := func(constraints []byte) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := f.Match(constraints)
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		require.Equal(t, "0-4095", got.String())
		return after.TotalAlloc - before.TotalAlloc
	}
	once := cost([]byte(`{"hostlist":["n0"]}`)) // makes the index
	require.Less(t, cost(often), once+256*uint64(len(often)))
}

// Values of ranks cost as much as their text, whatever was in the values before.
func TestManyValuesOfRanksCostAsTheirText(t *testing.T) {
	cost := func(values int) uint64 {
		odd := make([]string, 4*values)
		for i := range odd {
			odd[i] = fmt.Sprint(2*i + 1)
		}
		spec := specOf(t, shape("slot", "1", vertex("core", "1")),
			`{"ranks":["`+strings.Join(odd, ",")+`,1000000-2147483640`+strings.Repeat(`","1,3,5,7,9,11,13,15,17,19`, values)+`"]}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := pool.NewRequest(spec)
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, cost(4096), 8*cost(1024))
}

func TestAMillionHostsAreFoundAsOneRange(t *testing.T) {
	f := bigFake(1<<20, false)
	list, err := hostlist.Parse("n[1000-999999],n[0-10],m[0-15000000]")
	require.NoError(t, err)
	require.Equal(t, "0-10,1000-999999", f.RanksOfHosts(list).String())
	if !race.Enabled {
		require.LessOrEqual(t, testing.AllocsPerRun(3, func() { f.RanksOfHosts(list) }), 4.0)
	}
}

// A request without constraints may have every rank, which nil tells.
func TestARequestWithoutConstraintsMayHaveEveryRank(t *testing.T) {
	c := cluster(t)
	for constraints, nothing := range map[string]bool{``: true, `{}`: true, `{"and":[]}`: false} {
		q, err := pool.NewRequest(specOf(t, shape("slot", "1", vertex("core", "1")), constraints))
		require.NoError(t, err)
		require.Equal(t, nothing, c.Eligible(q) == nil)
	}
	q, err := pool.NewRequest(specOf(t, shape("slot", "1", vertex("core", "1")), `{"ranks":["1"]}`))
	require.NoError(t, err)
	got := c.Eligible(q)
	got.Insert(100)
	require.Equal(t, "1", c.Eligible(q).String(), "the set is the caller's")
}

// bigFake is an inventory of n ranks, a third of which has each property:
// in one range, or scattered.
func bigFake(n uint32, scattered bool) *pool.Fake {
	f := &pool.Fake{All: new(idset.Set), Properties: map[string]*idset.Set{}}
	f.All.InsertRange(0, n-1)
	names := []string{"foo", "bar", "ssd"}
	for i, name := range names {
		set := new(idset.Set)
		if scattered {
			for rank := uint32(i); rank < n; rank += 3 {
				set.Insert(rank)
			}
		} else {
			set.InsertRange(uint32(i)*(n/3), uint32(i+1)*(n/3)-1)
		}
		f.Properties[name] = set
	}
	f.Hosts = new(hostlist.List)
	if scattered {
		for rank := range n {
			_ = f.Hosts.Append(fmt.Sprintf("n%d", rank*7919%n))
		}
	} else {
		list, err := hostlist.Parse(fmt.Sprintf("n[0-%d]", n-1))
		if err != nil {
			panic(err)
		}
		f.Hosts = list
	}
	f.RanksOfHosts(f.Hosts) // make the index
	return f
}
