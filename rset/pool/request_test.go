package pool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
)

// specText returns a jobspec with the given resources and constraints, "" for
// none.
func specText(resources, constraints string) string {
	if constraints != "" {
		constraints = `,"constraints":` + constraints
	}
	return `{"version":1,"resources":` + resources +
		`,"tasks":[{"command":["app"],"slot":"task","count":{"per_slot":1}}]` +
		`,"attributes":{"system":{"duration":90.5` + constraints + `}}}`
}

// specOf parses what specText returns.
func specOf(t require.TestingT, resources, constraints string) *jobspec.Spec {
	s, err := jobspec.Parse([]byte(specText(resources, constraints)))
	require.NoError(t, err)
	return s
}

// vertex returns a resource, with others in it.
func vertex(kind, count string, with ...string) string {
	if !json.Valid([]byte(count)) {
		count = `"` + count + `"`
	}
	text := fmt.Sprintf(`{"type":%q,"count":%s`, kind, count)
	if kind == "slot" {
		text += `,"label":"task"`
	}
	if len(with) > 0 {
		text += `,"with":[` + strings.Join(with, ",") + `]`
	}
	return text + "}"
}

// shape returns the list of one resource.
func shape(kind, count string, with ...string) string {
	return "[" + vertex(kind, count, with...) + "]"
}

// whole makes a vertex exclusive, shared makes it say that it is not.
func whole(v string) string  { return strings.Replace(v, `,"count"`, `,"exclusive":true,"count"`, 1) }
func shared(v string) string { return strings.Replace(v, `,"count"`, `,"exclusive":false,"count"`, 1) }

// count parses a Count, the zero Count from "".
func count(t *testing.T, s string) jobspec.Count {
	if s == "" {
		return jobspec.Count{}
	}
	c, err := jobspec.ParseCount(s)
	require.NoError(t, err)
	return c
}

func TestAJobspecBecomesNodesSlotsAndWhatASlotTakes(t *testing.T) {
	core := func(n string) string { return vertex("core", n) }
	gpu := vertex("gpu", "1")
	for resources, want := range map[string]struct {
		nodes, slots, per string
		span              int64
		exclusive         bool
		text              string
	}{
		shape("slot", "1", core("1")):                                            {"", "1", "core:1", 1, false, "1 slot of 1 core"},
		shape("slot", "1", core("1"), vertex("gpu", "0")):                        {"", "1", "core:1", 1, false, "1 slot of 1 core"},
		shape("slot", "10", core("2"), gpu):                                      {"", "10", "core:2 gpu:1", 1, false, "10 slots of 2 cores, 1 gpu"},
		shape("node", "4", vertex("slot", "2", core("4"), gpu)):                  {"4", "2", "core:4 gpu:1", 1, false, "4 nodes of 2 slots of 4 cores, 1 gpu"},
		"[" + whole(vertex("node", "1", vertex("slot", "1", core("3")))) + "]":   {"1", "1", "core:3", 1, true, "1 whole node of 1 slot of 3 cores"},
		shape("node", "2+", vertex("slot", "1-4", core("1"))):                    {"2+", "1-4", "core:1", 1, false, "2+ nodes of 1-4 slots of 1 core"},
		shape("node", "1,4-6", vertex("slot", "2-8:2:*", core("1"))):             {"1,4-6", "2-8:2:*", "core:1", 1, false, "1,4-6 nodes of 2-8:2:* slots of 1 core"},
		shape("slot", "2+", core("2+"), vertex("gpu", "1-3")):                    {"", "2+", "core:2 gpu:1", 1, false, "2+ slots of 2 cores, 1 gpu"},
		shape("slot", "1", vertex("ssd", "2"), core("1"), vertex("a b", "1")):    {"", "1", "a b:1 core:1 ssd:2", 1, false, `1 slot of 1 "a b", 1 core, 2 ssds`},
		shape("slot", "4", vertex("node", "1")):                                  {"4", "1", "", 1, true, "4 whole nodes"},
		shape("slot", "4", vertex("node", "1", core("2"))):                       {"4", "1", "core:2", 1, true, "4 whole nodes of 1 slot of 2 cores"},
		shape("slot", "4", shared(vertex("node", "1", core("2"), gpu))):          {"4", "1", "core:2 gpu:1", 1, false, "4 nodes of 1 slot of 2 cores, 1 gpu"},
		shape("slot", "4", shared(vertex("node", "3", core("2")))):               {"4", "1", "core:2", 3, false, "4 slots of 3 nodes of 2 cores"},
		shape("slot", "4", vertex("node", "3")):                                  {"4", "1", "", 3, true, "4 slots of 3 whole nodes"},
		shape("slot", "2+", vertex("node", "3")):                                 {"2+", "1", "", 3, true, "2+ slots of 3 whole nodes"},
		shape("slot", "2-5", vertex("node", "3")):                                {"2-5", "1", "", 3, true, "2-5 slots of 3 whole nodes"},
		shape("slot", "2-8:2:*", vertex("node", "3")):                            {"2-8:2:*", "1", "", 3, true, "2-8:2:* slots of 3 whole nodes"},
		shape("slot", "1,4-6", vertex("node", "1")):                              {"1,4-6", "1", "", 1, true, "1,4-6 whole nodes"},
		shape("slot", "1,4", vertex("node", "2")):                                {"1,4", "1", "", 2, true, "1,4 slots of 2 whole nodes"},
		shape("slot", "2+:2:^", vertex("node", "2")):                             {"2+:2:^", "1", "", 2, true, "2+:2:^ slots of 2 whole nodes"},
		"[" + whole(vertex("node", "1", vertex("slot", "1", gpu))) + "]":         {"1", "1", "gpu:1", 1, true, "1 whole node of 1 slot of 1 gpu"},
		shape("slot", "1", vertex("core", "1"), vertex("memory", "4")):           {"", "1", "core:1 memory:4", 1, false, "1 slot of 1 core, 4 memorys"},
		shape("slot", "1", shared(vertex("core", "1"))):                          {"", "1", "core:1", 1, false, "1 slot of 1 core"},
		shape("node", "2147483647", vertex("slot", "1", vertex("core", "1024"))): {"2147483647", "1", "core:1024", 1, false, "2147483647 nodes of 1 slot of 1024 cores"},
	} {
		q, err := pool.NewRequest(specOf(t, resources, ""))
		require.NoError(t, err, resources)
		asked := q.Asked()
		require.Equal(t, count(t, want.nodes).String(), asked.Nodes.String(), resources)
		require.Equal(t, count(t, want.slots).String(), asked.Slots.String(), resources)
		require.Equal(t, want.per, asked.Per, resources)
		require.Equal(t, want.span, asked.Span, resources)
		require.Equal(t, want.exclusive, asked.Exclusive, resources)
		require.False(t, asked.Constrained)
		require.Equal(t, want.text, q.String())
		require.Equal(t, 90500*time.Millisecond, q.Duration())
	}
}

// refuseRequest requires that a request is refused, and returns the error.
func refuseRequest(t *testing.T, s *jobspec.Spec, category string, path string) *jsonobj.Fault {
	t.Helper()
	q, err := pool.NewRequest(s)
	require.Nil(t, q)
	var input *jsonobj.Fault
	require.ErrorAs(t, err, &input)
	require.ErrorContains(t, err, category)
	require.ErrorIs(t, err, input.Err)
	require.Equal(t, path, input.Path, err)
	require.True(t, strings.HasPrefix(err.Error(), "pool: "), err)
	require.Equal(t, 1, strings.Count(err.Error(), "pool: "), err)
	require.NotContains(t, err.Error(), "\n")
	return input
}

func TestWhatAPoolDoesNotKnowIsRefusedByItsPath(t *testing.T) {
	slot := vertex("slot", "1", vertex("core", "1"))
	with := func(v, key string) string { return strings.Replace(v, `,"count"`, `,`+key+`,"count"`, 1) }
	for resources, path := range map[string]string{
		"[" + slot + "," + vertex("node", "1") + "]":                        "resources[1]",
		shape("rack", "1", slot):                                            "resources[0].type",
		shape("node", "1", vertex("socket", "2", slot)):                     "resources[0].with[0].type",
		shape("node", "1", vertex("gpu", "2"), slot):                        "resources[0].with[0].type",
		shape("node", "1", slot, vertex("gpu", "2")):                        "resources[0].with[1].type",
		shape("node", "1", vertex("node", "1", slot)):                       "resources[0].with[0].type",
		shape("slot", "1", vertex("socket", "1", vertex("core", "1"))):      "resources[0].with[0].with",
		shape("slot", "1", vertex("core", "1"), vertex("core", "2")):        "resources[0].with[1].type",
		shape("slot", "1", vertex("gpu", "1")):                              "resources[0]",
		shape("slot", "1", shared(vertex("node", "1"))):                     "resources[0].with[0]",
		shape("slot", "1", shared(vertex("node", "1", vertex("gpu", "1")))): "resources[0].with[0]",
		shape("slot", "1", vertex("gpu", "1"), vertex("node", "1")):         "resources[0].with[1].type",
		shape("slot", "1", vertex("node", "1"), vertex("gpu", "1")):         "resources[0].with[1].type",
		shape("slot", "1", vertex("node", "1"), vertex("node", "1")):        "resources[0].with[1].type",
		shape("slot", "1", vertex("node", "1", with(vertex("slot", "1", vertex("core", "1")), `"x":0`)[:0]+`{"type":"slot","count":1,"label":"b","with":[{"type":"core","count":1}]}`)): "resources[0].with[0].with[0].type",
		shape("slot", "1", vertex("node", "1-2")):                                           "resources[0].with[0].count",
		shape("slot", "1", vertex("core", "1"), with(vertex("memory", "4"), `"unit":"GB"`)): "resources[0].with[1].unit",
		shape("slot", "1", with(vertex("core", "1"), `"id":"0-3"`)):                         "resources[0].with[0].id",
		"[" + with(vertex("node", "1", slot), `"id":"7"`) + "]":                             "resources[0].id",
		shape("slot", "1", vertex("core", "1"), vertex(strings.Repeat("k", 65), "1")):       "resources[0].with[1].type",
		"[" + slot + "," + strings.Replace(slot, "task", "b", 1) + "]":                      "resources[1]",
	} {
		s := specOf(t, resources, "")
		require.Equal(t, -1, refuseRequest(t, s, badRequest, path).Offset)
	}
	_, err := pool.NewRequest(nil)
	require.ErrorIs(t, err, pool.ErrRequest)
}

// A kind may have the longest name that is let in.
func TestAKindOf64BytesIsAKind(t *testing.T) {
	kind := strings.Repeat("k", 64)
	q, err := pool.NewRequest(specOf(t, shape("slot", "1", vertex("core", "1"), vertex(kind, "1")), ""))
	require.NoError(t, err)
	require.Equal(t, "1 slot of 1 core, 1 "+kind, q.String())
}

func TestProductsBeyondTheLargestQuantityAreRefused(t *testing.T) {
	refuse := func(resources, path string) {
		t.Helper()
		refuseRequest(t, specOf(t, resources, ""), tooMuch, path)
	}
	// jobspec itself refuses products of fixed numbers; of ranges it does not
	// know them.
	refuse(shape("node", "2147483647+", vertex("slot", "2147483647+", vertex("core", "1"))), "resources")
	refuse(shape("node", "2147483647+", vertex("slot", "2", vertex("core", "2147483647+"))), "resources")
	refuse(shape("slot", "2147483647+", vertex("core", "4194305+")), "resources")
	refuse(shape("slot", "1073741824", vertex("node", "2")), "resources[0].with[0].count")
	refuse(shape("slot", "1073741824+", vertex("node", "2")), "resources[0].with[0].count")
	refuse(shape("slot", "1073741823+", vertex("node", "2", vertex("core", "4194305+"))), "resources")
	refuse(shape("slot", "2147483647,2147483646", "")[:0]+shape("node", "2147483647+", whole(vertex("slot", "4194305+", vertex("core", "1")))), "resources")

	q, err := pool.NewRequest(specOf(t, shape("slot", "2147483647+", vertex("core", "4194304+")), ""))
	require.NoError(t, err)
	_, n := q.Smallest("core")
	require.Equal(t, int64(2147483647)*4194304, n)
	_, err = pool.NewRequest(specOf(t, shape("slot", "1", vertex("node", "2147483647")), ""))
	require.NoError(t, err)
}

func TestTheZeroRequestIsEmpty(t *testing.T) {
	require.Empty(t, new(pool.Request).String())
	require.True(t, new(pool.Request).Asked().Slots.IsZero())
	require.Zero(t, new(pool.Request).Duration())
}

func TestARequestTellsThatItIsConstrained(t *testing.T) {
	q, err := pool.NewRequest(specOf(t, shape("slot", "4", vertex("node", "1")), `{"properties":["ssd"]}`))
	require.NoError(t, err)
	require.True(t, q.Asked().Constrained)
	require.Equal(t, "4 whole nodes, constrained", q.String())

	q, err = pool.NewRequest(specOf(t, shape("slot", "1", vertex("core", "1")), `{}`))
	require.NoError(t, err)
	require.False(t, q.Asked().Constrained)
}

// The number of slots is that of the job, not that of its parts on nodes.
func TestSlotsThatSpanNodesCountOnce(t *testing.T) {
	q, err := pool.NewRequest(specOf(t, shape("slot", "4", shared(vertex("node", "3", vertex("core", "2")))), ""))
	require.NoError(t, err)
	slots, cores := q.Smallest("core")
	require.Equal(t, []int64{4, 24}, []int64{slots, cores})
}

// requireCounts requires that a request agrees with what a listing tells of its
// jobspec, as far as that is known.
func requireCounts(t require.TestingT, s *jobspec.Spec, q *pool.Request) {
	c, asked := s.Counts(), q.Asked()
	if n, known := c.Nodes.Value(); known {
		got, fixed := asked.Nodes.Fixed()
		require.True(t, fixed)
		require.Equal(t, n, got*asked.Span)
	}
	slots, cores := q.Smallest("core")
	_, gpus := q.Smallest("gpu")
	for _, pair := range []struct {
		want jobspec.Quantity
		got  int64
	}{{c.Slots, slots}, {c.Cores, cores}, {c.GPUs, gpus}} {
		if n, known := pair.want.Value(); known {
			require.Equal(t, n, pair.got)
		}
	}
	require.Equal(t, s.Duration(), q.Duration())
	if shape, err := s.Shape(); err == nil {
		require.Equal(t, shape.Nodes, asked.Nodes)
		require.Equal(t, shape.Slots, asked.Slots)
		require.Equal(t, shape.Exclusive, asked.Exclusive)
		require.Contains(t, asked.Per, fmt.Sprintf("core:%d", shape.Cores.Min()))
	}
}

func TestEveryRecordedJobspecIsARequestOfWhatTheJobGot(t *testing.T) {
	type recorded struct {
		F58     string          `json:"f58"`
		Jobspec json.RawMessage `json:"jobspec"`
		R       json.RawMessage `json:"R"`
	}
	jobs, got, whole := 0, 0, 0
	for file, n := range map[string]int{"brokers": 33, "mixed": 380, "restart-pending": 8, "restart-done": 8} {
		for _, j := range refdata.Lines[recorded](t, "recorded/"+file+".jsonl.gz", n) {
			jobs++
			s, err := jobspec.Parse(j.Jobspec)
			require.NoError(t, err, j.F58)
			q, err := pool.NewRequest(s)
			require.NoError(t, err, j.F58)
			requireCounts(t, s, q)
			require.NotEmpty(t, q.String())
			if len(j.R) == 0 || string(j.R) == "null" {
				continue
			}
			got++
			r, err := rset.Parse(j.R)
			require.NoError(t, err, j.F58)
			asked := q.Asked()
			slots, cores := q.Smallest("core")
			_, gpus := q.Smallest("gpu")
			require.Equal(t, r.Slots(), slots, j.F58)
			if !asked.Nodes.IsZero() {
				n, _ := asked.Nodes.Floor(int64(r.Len()))
				require.EqualValues(t, r.Len(), n, j.F58)
			}
			if asked.Exclusive {
				whole++
				require.LessOrEqual(t, cores, r.Count("core"), j.F58)
				continue
			}
			require.Equal(t, r.Count("core"), cores, j.F58)
			require.Equal(t, r.Count("gpu"), gpus, j.F58)
		}
	}
	require.Equal(t, 429, jobs)
	require.Equal(t, []int{406, 15}, []int{got, whole})
}
