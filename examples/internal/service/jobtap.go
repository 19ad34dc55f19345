package service

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/joblife/joblife/examples/internal/errno"
)

// The plugins of flux-core's module whose work the service does: those that are in the module,
// and those that it loads.
var (
	inModule = []string{
		".priority-default", ".limit-job-size", ".limit-duration", ".dependency-after", ".dependency-singleton",
		".begin-time", ".validate-duration", ".update-duration", ".history", ".post-event", ".update-queue",
	}
	loadable = []string{"alloc-bypass.so", "perilog.so"}
)

// plugins are what users believe is loaded. A plugin does its work whether it is or not.
type plugins []string // those of loadable, in their order

func (s *plugins) all() []string { return slices.Concat(inModule, *s) }

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
	list := slices.Clone(*s)
	if p.Remove != nil {
		remove := func(name string) bool {
			match, _ := path.Match(*p.Remove, name)
			return *p.Remove == "all" || match
		}
		left := slices.DeleteFunc(slices.Clone(list), remove)
		switch {
		case *p.Remove != "all" && slices.ContainsFunc(inModule, func(name string) bool {
			return strings.HasPrefix(*p.Remove, ".") && remove(name)
		}):
			return nil, fail(errno.NoSys, "%s is built in and cannot be removed", *p.Remove)
		case *p.Remove != "all" && len(left) == len(list):
			return nil, fail(errno.NoEntry, "Failed to find plugin to remove")
		}
		list = left
	}
	if p.Load != nil && !slices.Contains(inModule, *p.Load) {
		name := path.Base(*p.Load)
		switch {
		case !slices.Contains(loadable, name):
			return nil, fail(errno.NoSys, "%s: this job manager loads no plugins", name)
		case slices.Contains(list, name):
			return nil, fail(errno.Exists, "%s already loaded", name)
		}
		list = append(list, name)
	}
	*s = list
	return nil, nil
}

// query tells of a plugin.
func (s *plugins) query(_ *Request, p struct {
	Name string `json:"name"`
}) (any, error) {
	if !slices.Contains(s.all(), p.Name) {
		return nil, fail(errno.Invalid, "%s: plugin not found", p.Name)
	}
	return map[string]string{"name": p.Name, "path": "builtin"}, nil
}
