package service

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

// The plugins of flux-core's module whose work the service does: those that are in the module,
// and those that it loads.
var (
	inModule = []string{
		".priority-default", ".limit-job-size", ".limit-duration", ".dependency-after", ".dependency-singleton",
		".begin-time", ".validate-duration", durationPlugin, historyPlugin, ".post-event", queuePlugin,
	}
	loadable = []string{"alloc-bypass.so", "perilog.so"}

	// removable are those of the module that only serve requests. The others cannot be removed.
	removable = []string{historyPlugin, durationPlugin, queuePlugin}
)

const (
	historyPlugin  = ".history"
	durationPlugin = ".update-duration" // with owner-allow-any=0 the owner is as others are
	queuePlugin    = ".update-queue"
)

// plugins are what users believe is loaded. Those of loadable do their work whether they are or
// not. A restart begins with those of the module.
type plugins struct {
	removed []string // of removable
	loaded  []string // of loadable, in their order
	equal   bool     // the owner may update durations as others may
}

func (s *plugins) all() []string {
	return slices.Concat(slices.DeleteFunc(slices.Clone(inModule), func(name string) bool { return slices.Contains(s.removed, name) }), s.loaded)
}

// serves reports whether a plugin of removable is there.
func (s *plugins) serves(name string) bool { return !slices.Contains(s.removed, name) }

// jobtap loads and removes plugins, or lists them.
func (s *plugins) jobtap(_ *Request, p struct {
	Load   *string         `json:"load,omitempty"`
	Remove *string         `json:"remove,omitempty"`
	Conf   json.RawMessage `json:"conf,omitempty"`
	Query  bool            `json:"query_only,omitempty"`
}) (any, error) {
	if p.Query {
		return map[string][]string{"plugins": s.all()}, nil
	}
	next := plugins{slices.Clone(s.removed), slices.Clone(s.loaded), s.equal}
	if p.Remove != nil {
		remove := func(name string) bool {
			match, _ := path.Match(*p.Remove, name)
			return *p.Remove == "all" || match
		}
		left := slices.DeleteFunc(slices.Clone(next.loaded), remove)
		found := len(left) < len(next.loaded)
		next.loaded = left
		for _, name := range s.all() {
			switch {
			case *p.Remove == "all" || !strings.HasPrefix(*p.Remove, ".") || !slices.Contains(inModule, name) || !remove(name):
			case !slices.Contains(removable, name):
				return nil, fail(errno.NoSys, "%s is built in and cannot be removed", name)
			default:
				next.removed, found = append(next.removed, name), true
			}
		}
		if !found && *p.Remove != "all" {
			return nil, fail(errno.NoEntry, "Failed to find plugin to remove")
		}
	}
	if p.Load != nil {
		var conf struct {
			OwnerAllowAny *int `json:"owner-allow-any"`
		}
		switch name := path.Base(*p.Load); {
		case slices.Contains(inModule, *p.Load):
			if *p.Load == durationPlugin {
				_ = json.Unmarshal(p.Conf, &conf) // others may have put more there
				next.equal = conf.OwnerAllowAny != nil && *conf.OwnerAllowAny == 0
			}
			next.removed = slices.DeleteFunc(next.removed, func(name string) bool { return name == *p.Load })
		case !slices.Contains(loadable, name):
			return nil, fail(errno.NoSys, "%s: this job manager loads no plugins", name)
		case slices.Contains(next.loaded, name):
			return nil, fail(errno.Exists, "%s already loaded", name)
		default:
			next.loaded = append(next.loaded, name)
		}
	}
	*s = next
	return nil, nil
}

// jobtapQuery tells of a plugin, with what some plugins have to say.
func (s *Service) jobtapQuery(r *Request, p struct {
	Name string `json:"name"`
}) (any, error) {
	if !slices.Contains(s.plugins.all(), p.Name) {
		return nil, fail(errno.Invalid, "%s: plugin not found", p.Name)
	}
	out := map[string]any{}
	switch p.Name {
	case "perilog.so":
		a := &s.cfg.Manager.Actions
		out["conf"] = map[string]any{"prolog": actionConf(a.Prologs, 30*time.Minute, true), "epilog": actionConf(a.Epilogs, 0, false)}
		out["procs"] = s.processes.procs()
	case ".dependency-after":
		out["dependencies"] = s.dependents()
	case ".dependency-singleton":
		for key, v := range s.singletons() {
			out[key] = v
		}
	}
	out["name"], out["path"] = p.Name, "builtin"
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(text), s.hold(r, &s.answers, len(text))
}

// actionConf returns the configuration of the prolog or the epilog in flux-core's form, with
// its defaults. A timeout of 0 is none.
func actionConf(list []perilog.ActionConfig, timeout time.Duration, cancel bool) any {
	if len(list) == 0 {
		return struct{}{}
	}
	a := &list[0]
	if a.CancelOnException != nil {
		cancel = *a.CancelOnException
	}
	if timeout = cmp.Or(time.Duration(a.Timeout), timeout); timeout == time.Duration(fsd.Forever) {
		timeout = 0
	}
	return struct {
		Command     []string `json:"command"`
		PerRank     bool     `json:"per_rank"`
		Cancel      bool     `json:"cancel_on_exception"`
		Timeout     float64  `json:"timeout"`
		KillTimeout float64  `json:"kill-timeout"`
	}{a.Command, a.PerRank, cancel, timeout.Seconds(), cmp.Or(time.Duration(a.KillTimeout), time.Minute).Seconds()}
}

// proc is what runs of the prolog or the epilog of a job.
type proc struct {
	Name   string     `json:"name"`
	Total  int        `json:"total"` // how many were launched with those that run
	Active int        `json:"active"`
	Ranks  *idset.Set `json:"active_ranks"`
}

// procs returns what runs, by job. It does not tell when flux-core's timers would expire.
func (s *processes) procs() map[string]*proc {
	out, seen := make(map[string]*proc), make(map[*launch]bool)
	for _, p := range s.running {
		if p.action.Kind == jobstate.ActionHousekeeping {
			continue
		}
		name := s.name(p.job)
		x := out[name]
		if x == nil {
			x = &proc{Name: p.action.Kind.String(), Ranks: idset.Of()}
			out[name] = x
		}
		if !seen[p.launch] {
			seen[p.launch] = true
			x.Total += p.launch.total
		}
		if !p.exited {
			x.Active++
			x.Ranks.Insert(p.rank)
		}
	}
	return out
}

// A dependent is a job that waits for another one.
type dependent struct {
	ID          jobid.ID `json:"id"` // of the other one
	Dependent   jobid.ID `json:"depid"`
	Type        string   `json:"type"`
	Description string   `json:"description"`
}

// dependents returns the jobs that wait for others.
func (s *Service) dependents() []dependent {
	list := []dependent{}
	for v := range s.m.Jobs(jobstate.StateDepend) {
		for _, d := range v.Job().Dependencies() {
			kind, other, ok := strings.Cut(d, "=")
			if id, err := jobid.Parse(other); ok && err == nil && strings.HasPrefix(kind, "after-") {
				list = append(list, dependent{id, v.ID(), kind, d})
			}
		}
	}
	return list
}

// A namesake counts the active jobs of one user and name, and lists those that wait until
// they are alone.
type namesake struct {
	Count      int        `json:"count"`
	Singletons []jobid.ID `json:"singletons"`
}

// singletons returns the active jobs with a name of their own, by user and name.
func (s *Service) singletons() map[string]*namesake {
	out := make(map[string]*namesake)
	for v := range s.m.Jobs(jobstate.StateNew | jobstate.StateActive) {
		name, ok := v.Jobspec().Lookup("attributes.system.job.name")
		var text string
		if !ok || json.Unmarshal(name, &text) != nil {
			continue
		}
		key := fmt.Sprintf("%d:%s", v.UserID(), text)
		x := out[key]
		if x == nil {
			x = &namesake{Singletons: []jobid.ID{}}
			out[key] = x
		}
		if x.Count++; slices.Contains(v.Job().Dependencies(), "singleton") {
			x.Singletons = append(x.Singletons, v.ID())
		}
	}
	return out
}
