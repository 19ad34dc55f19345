package peers

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"strings"

	"github.com/bytedance/sonic"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	goccy "github.com/goccy/go-json"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// life is what happens to a job, with the state after each event.
var life = []struct{ name, context, state string }{
	{"submit", `{"userid":5588,"urgency":16,"flags":0,"version":1}`, "NEW"}, {"validate", "", "DEPEND"},
	{"depend", "", "PRIORITY"}, {"priority", `{"priority":16}`, "SCHED"},
	{"alloc", `{"annotations":{"sched":{"resource_summary":"rank[0-3]/core[0-7]"}}}`, "RUN"}, {"start", "", "RUN"},
	{"finish", `{"status":0}`, "CLEANUP"}, {"release", `{"ranks":"all","final":true}`, "CLEANUP"}, {"free", "", "CLEANUP"}, {"clean", "", "INACTIVE"},
}

// lives returns the log of n jobs, one after the other.
func lives(n int) []byte {
	var log []byte
	for i := range n * len(life) {
		e := life[i%len(life)]
		var err error
		log, err = eventlog.AppendEntry(log, eventlog.Entry{
			Timestamp: eventlog.Timestamp(1.6e9 + float64(i)*0.0123), Name: e.name, Context: stdjson.RawMessage(e.context),
		})
		must(err)
	}
	return log
}

func must(err error) {
	if err != nil {
		panic(err) // the inputs are fixed
	}
}

// told is what the sides find in a log.
type told struct {
	events, contexts, names int
	times                   float64
}

func (t *told) add(time float64, name string, hasContext bool) {
	t.events++
	t.names += len(name)
	t.times += time
	if hasContext {
		t.contexts++
	}
}

// entry is what one decodes a line into.
type entry[Raw ~[]byte] struct {
	Timestamp float64 `json:"timestamp"`
	Name      string  `json:"name"`
	Context   Raw     `json:"context"`
}

// linesBy decodes line by line with an Unmarshal.
func linesBy[Raw ~[]byte](log []byte, unmarshal func([]byte, any) error) any {
	var t told
	for line := range bytes.Lines(log) {
		var e entry[Raw]
		must(unmarshal(line, &e))
		t.add(e.Timestamp, e.Name, len(e.Context) > 0)
	}
	return t
}

// spec is what one decodes a jobspec into.
type spec struct {
	Resources  []vertex `json:"resources"`
	Attributes struct {
		System struct {
			Duration float64 `json:"duration"`
			Queue    string  `json:"queue"`
			Cwd      string  `json:"cwd"`
		} `json:"system"`
	} `json:"attributes"`
}

type vertex struct {
	Type  string   `json:"type"`
	Count int64    `json:"count"`
	With  []vertex `json:"with"`
}

// size is what the sides find in a jobspec.
type size struct {
	nodes, slots, cores, gpus int64
	duration                  float64
	queue, cwd                string
}

func (s *size) add(kind string, n int64) {
	switch kind {
	case "node":
		s.nodes += n
	case "slot":
		s.slots += n
	case "core":
		s.cores += n
	case "gpu":
		s.gpus += n
	}
}

func (s *size) walk(list []vertex, times int64) {
	for _, v := range list {
		s.add(v.Type, times*v.Count)
		s.walk(v.With, times*v.Count)
	}
}

func specBy(text []byte, unmarshal func([]byte, any) error) any {
	var p spec
	must(unmarshal(text, &p))
	sys := p.Attributes.System
	s := size{duration: sys.Duration, queue: sys.Queue, cwd: sys.Cwd}
	s.walk(p.Resources, 1)
	return s
}

// jobspecText is a jobspec with the environment of a user.
func jobspecText() []byte {
	var env []string
	for i := range 40 {
		env = append(env, fmt.Sprintf(`"VARIABLE_%d":"/usr/local/some/folder/%d:/usr/bin"`, i, i))
	}
	return []byte(`{"version":1,"resources":[{"type":"node","count":4,"with":[{"type":"slot","count":2,"label":"task","with":[{"type":"core","count":8},{"type":"gpu","count":1}]}]}],` +
		`"tasks":[{"command":["./simulate","--steps","1000"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":3600,"queue":"batch","cwd":"/home/user",` +
		`"environment":{` + strings.Join(env, ",") + `},"shell":{"options":{"rlimit":{"nofile":1024}}}}}}`)
}

func jsonTasks(scale int) []task {
	log, text := lives(1000/scale), jobspecText()
	logs := task{"decode/log", []side{{name: us, run: func() any {
		var t told
		for e, err := range eventlog.Entries(log) {
			must(err)
			t.add(float64(e.Timestamp), e.Name, len(e.Context) > 0)
		}
		return t
	}}}}
	specs := task{"decode/jobspec", []side{{name: us, run: func() any {
		p, err := jobspec.Parse(text)
		must(err)
		c, s := p.Counts(), size{duration: p.Duration().Seconds(), queue: p.Queue(), cwd: p.Cwd()}
		for n, q := range map[*int64]jobspec.Quantity{&s.nodes: c.Nodes, &s.slots: c.Slots, &s.cores: c.Cores, &s.gpus: c.GPUs} {
			*n, _ = q.Value()
		}
		return s
	}}}}
	for _, peer := range []struct {
		name      string
		unmarshal func([]byte, any) error
		lines     func([]byte, func([]byte, any) error) any
	}{
		{"std", stdjson.Unmarshal, linesBy[stdjson.RawMessage]},
		{"jsonv2", func(b []byte, v any) error { return jsonv2.Unmarshal(b, v) }, linesBy[jsontext.Value]},
		{"sonic", sonic.Unmarshal, linesBy[stdjson.RawMessage]},
		{"go-json", goccy.Unmarshal, linesBy[stdjson.RawMessage]},
	} {
		logs.sides = append(logs.sides, side{name: peer.name, run: func() any { return peer.lines(log, peer.unmarshal) }})
		specs.sides = append(specs.sides, side{name: peer.name, run: func() any { return specBy(text, peer.unmarshal) }})
	}
	return []task{logs, specs}
}
