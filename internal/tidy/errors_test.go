//go:build !race

package tidy

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// errorTexts is the page that TestErrorsAreLessons keeps: read it as an operator at night.
// Each text says what happened and where, and what helps if that is not plain.
const errorTexts = "testdata/errors.txt"

// elsewhere are the errors of other modules, whose own tests provoke them.
const elsewhere = "purge/boltstore.ErrDamaged"

// A lesson is an error that was provoked. Its name is that of a variable or type, with the
// folder of its package, or a folder alone for an error that nobody branches on.
type lesson struct {
	name, when string
	is         error // nil: the type of that name
	err        error
}

// tarred returns a tar archive of names and texts by turns.
func tarred(files ...string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		must(0, w.WriteHeader(&tar.Header{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o600}))
		must(w.Write([]byte(files[i+1])))
	}
	must(0, w.Close())
	return b.Bytes()
}

// resources returns the errors of sets, inventories and schedulers.
func resources() []lesson {
	p := must(pool.New(cores(0, 1, 2, 3), pool.Config{}))
	must(0, p.Update(pool.Change{Up: idset.Of(0, 1)}))
	ask := func(nodes int64) *pool.Request { return must(pool.NewRequest(spec(nodes))) }
	must(p.Alloc(id, ask(2), start))
	list := []lesson{
		{"idset.ErrRange", "an id that is too large", idset.ErrRange, second(idset.ParseLimit("0-4096", 1023))},
		{"idset.ErrRange", "an id that RFC 22 does not have", idset.ErrRange, second(idset.Parse("4294967296"))},
		{"idset.ErrLimit", "too long a text", idset.ErrLimit, second(idset.Parse(strings.Repeat("1,", 8<<20)))},
		{"idset", "an empty element", nil, second(idset.Parse("1,,2"))},
		{"rset/hostlist.ErrLimit", "too many hosts", hostlist.ErrLimit, second(hostlist.Parser{MaxHosts: 1024}.Parse("n[0-999999]"))},
		{"rset/hostlist", "a bracket that is not closed", nil, second(hostlist.Parse("foo[1-"))},
		{"rset.ErrLimit", "too long an R", rset.ErrLimit, second(rset.Parse(bytes.Repeat([]byte(" "), 65<<20)))},
		{"rset", "an R without ranks", nil, second(rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"children":{"core":"0"}}]}}`)))},
		{"rset", "a rank twice", nil, second(rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}},{"rank":"1","children":{"core":"1"}}]}}`)))},
		{"rset/pool.ErrInfeasible", "more nodes than there are", pool.ErrInfeasible, p.Feasible(ask(9))},
		{"rset/pool.ErrBusy", "more nodes than are up", pool.ErrBusy, second(p.Alloc(id+1, ask(3), start))},
		{"rset/pool.ErrExists", "a job that has resources", pool.ErrExists, second(p.Alloc(id, ask(1), start))},
		{"rset/pool.ErrNotFound", "resources of a job that has none", pool.ErrNotFound, second(p.Free(id+1, cores(0), true))},
		{"rset/pool.ErrRequest", "no request", pool.ErrRequest, second(p.Alloc(id+1, nil, start))},
		{"rset/pool.ErrRequest", "resources in an order that no pool has", pool.ErrRequest, second(pool.NewRequest(must(parseSpec(`[{"type":"rack","count":1,"with":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]}]}]`))))},
		{"rset/pool.ErrAcquire", "a response without any key", pool.ErrAcquire, second(pool.ParseAcquire([]byte(`{}`)))},
		{"rset/pool", "resources of a job that another has", nil, p.Adopt(id+2, cores(1, 3), nil)},
	}
	end := eventlog.Timestamp(start + 10)
	must(0, p.Update(pool.Change{Expiration: &end}))
	list = append(list, lesson{"rset/pool.ErrExpired", "an instance whose time is over", pool.ErrExpired, second(p.Alloc(id+1, ask(1), start+20))})

	line := func(text string) error { return second2(alloc.ParseFromManager([]byte(text))) }
	list = append(list,
		lesson{"rset/alloc.ErrMessage", "a request without an id", alloc.ErrMessage, line(`{"topic":"sched.alloc","payload":{"priority":16}}`)},
		lesson{"rset/alloc.ErrMessage", "a line that is no JSON", alloc.ErrMessage, line("sched.alloc 1")},
		lesson{"rset/alloc.ErrLimit", "too long a topic", alloc.ErrLimit, line(`{"topic":"` + strings.Repeat("x", 65<<20) + `"}`)},
		lesson{"rset/alloc", "an answer to no request", nil, func() error {
			q := alloc.NewQueue(alloc.Config{})
			_, _, err := q.Response(nil, alloc.Response{ID: id, Type: alloc.ResponseDeny, Note: "no"})
			return err
		}()})

	s := sched.New(sched.Config{MaxJobs: 1})
	request := func(id jobid.ID) alloc.Request {
		return alloc.Request{JobInfo: alloc.JobInfo{ID: id, Priority: 16}, Jobspec: specText(1)}
	}
	list = append(list, lesson{"rset/sched.ErrNotReady", "a request before the hello", sched.ErrNotReady, s.Handle(request(id))})
	must(0, errors.Join(s.Acquire(pool.Acquire{Resources: cores(0), Change: pool.Change{Up: idset.Of(0)}}), s.Hello(alloc.Announcement{}), s.Handle(request(id))))
	return append(list,
		lesson{"rset/sched.ErrExists", "a request that is repeated", sched.ErrExists, s.Handle(request(id))},
		lesson{"rset/sched.ErrLimit", "one job too many", sched.ErrLimit, s.Handle(request(id + 1))},
		lesson{"rset/sched.ErrNoR", "a hello of a job without its R", sched.ErrNoR, s.Hello(alloc.Announcement{Responses: []alloc.HelloResponse{{JobInfo: alloc.JobInfo{ID: id}}}})})
}

// actions returns the errors of prologs and epilogs, and of the executor.
func actions() []lesson {
	prolog := perilog.ActionConfig{Command: []string{"check"}, PerRank: true}
	job := must(perilog.NewJob(&perilog.Config{Prologs: []perilog.ActionConfig{prolog}}, perilog.JobConfig{ID: id, R: cores(0, 1)}))
	apply := func(name, context string) error {
		return second(job.Apply(start, eventlog.Entry{Timestamp: start, Name: name, Context: []byte(context)}))
	}
	for _, e := range [][2]string{
		{"submit", `{"userid":0,"urgency":16,"flags":0,"version":1}`}, {"validate", ""}, {"depend", ""}, {"priority", `{"priority":16}`}, {"alloc", ""},
	} {
		must(0, apply(e[0], e[1]))
	}
	list := []lesson{
		{"perilog.ErrOrder", "a start before the prolog has ended", perilog.ErrOrder, apply("start", "")},
		{"perilog.ErrAction", "an end of an epilog that did not begin", perilog.ErrAction,
			job.ForceFinish(start, jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "dws"}, nil, 0, "root")},
		{"perilog", "a finish of a prolog that the Job runs itself", nil, apply("prolog-finish", `{"description":"job-manager.prolog","status":0}`)},
		{"perilog", "a negative timeout", nil, second(perilog.NewJob(&perilog.Config{Epilogs: []perilog.ActionConfig{{Timeout: -1}}}, perilog.JobConfig{ID: id}))},
	}
	job.Shutdown(start, start+1)
	job.Tick(start + 2)
	var x exec.Executor
	old := must(x.Hello(3, nil))
	must(x.Hello(3, nil))
	return append(list,
		lesson{"perilog.ErrStopped", "an event after a shutdown", perilog.ErrStopped, apply("memo", "{}")},
		lesson{"perilog/exec.ErrSession", "a report by an earlier connection", exec.ErrSession, x.Update(old, exec.TaskStatus{Task: exec.Task{Job: id}, State: exec.TaskRunning})},
		lesson{"perilog/exec", "a response of no type", nil, second(exec.Parse[exec.Response]([]byte(`{"id":1,"type":"stop","data":{}}`)))})
}

// purged returns the errors of the index of inactive jobs, and of its store.
func purged(t *testing.T) []lesson {
	x := must(purge.Recover(purge.Config{Active: func(j jobid.ID) (jobstate.State, bool) { return jobstate.StateRun, j == id+1 }}, purge.Snapshot{
		Jobs:       []jobstate.Summary{{ID: id, Inactive: start, Result: jobstate.ResultCompleted}, {ID: id + 4, Inactive: start, Result: jobstate.ResultCompleted}},
		Tombstones: []jobstate.Summary{{ID: id + 2, Inactive: start, Result: jobstate.ResultCanceled}},
	}))
	must(x.Pin(id, purge.Pin{Kind: purge.PinHousekeeping, By: "rank 17"}))
	plan := func(j jobid.ID) error { return second(x.PlanIDs(j)) }
	list := []lesson{
		{"purge.ErrUnknown", "a job that is not there", purge.ErrUnknown, plan(id + 3)},
		{"purge.ErrActive", "a job that runs", purge.ErrActive, plan(id + 1)},
		{"purge.ErrPinned", "a job whose housekeeping goes on", purge.ErrPinned, plan(id)},
		{"purge.ErrPurged", "a job that was purged", purge.ErrPurged, plan(id + 2)},
		{"purge.ErrClock", "a clock that jumped by a month", purge.ErrClock, second(x.Plan(start+30*86400, purge.PurgeAll()))},
		{"purge", "a negative age", nil, second(x.Plan(start, purge.Limits{MaxAge: jobstate.Some(-time.Second)}))},
	}
	must(x.Claim(start+1, purge.PurgeAll()))
	list = append(list, lesson{"purge.ErrLeaving", "a job that the store is removing", purge.ErrLeaving, plan(id + 4)})

	dir := t.TempDir()
	list = append(list, lesson{"purge/dirstore.ErrNotStore", "a folder that is no store", dirstore.ErrNotStore, second(dirstore.Open(dir))})
	s := must(dirstore.Create(dir + "/store"))
	must(0, s.Add(dirstore.Stored{ID: id, Eventlog: []byte(`{"timestamp":1,"name":"submit"}` + "\n")}))
	must(0, os.Truncate(dir+"/store/"+id.KVSPath()+"/eventlog", 9))
	damaged := second(s.Read(id))
	must(0, os.Remove(dir+"/store/"+id.KVSPath()+"/eventlog"))
	return append(list,
		lesson{"purge/dirstore.ErrDamaged", "a log that was cut", dirstore.ErrDamaged, damaged},
		lesson{"purge/dirstore.JobError", "a job without its log", nil, second(s.Read(id))},
		lesson{"purge/dirstore", "a store that is open", nil, second(dirstore.Open(dir + "/store"))})
}

// exportedErrors returns the errors that the library exports, as name → what kind it is.
func exportedErrors(t *testing.T) map[string]bool {
	found := make(map[string]bool)
	must(0, fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || kindOf(name) != library || strings.Contains(name, "internal/") || strings.Contains(name, "testdata/") {
			return err
		}
		folder := path.Dir(name)
		if folder == "." {
			folder = "joblife"
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), "../../"+name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		add := func(id string) {
			if ast.IsExported(id) {
				found[folder+"."+id] = true
			}
		}
		for _, decl := range syntax.Decls {
			switch d := decl.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
						for _, id := range s.Names {
							if strings.HasPrefix(id.Name, "Err") {
								add(id.Name)
							}
						}
					}
				}
			case *ast.FuncDecl:
				if d.Name.Name == "Error" && d.Recv != nil && d.Type.Params.NumFields() == 0 {
					recv := d.Recv.List[0].Type
					if p, ok := recv.(*ast.StarExpr); ok {
						recv = p.X
					}
					if id, ok := recv.(*ast.Ident); ok {
						add(id.Name)
					}
				}
			}
		}
		return nil
	}))
	return found
}

// typed reports whether an error, or one that it wraps, has the exported type of a name.
func typed(err error, name string) bool {
	if strings.TrimPrefix(fmt.Sprintf("%T", err), "*") == path.Base(name) {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return typed(e.Unwrap(), name)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(err error) bool { return typed(err, name) })
	}
	return false
}

// TestErrorsAreLessons provokes every error that the library exports. A new one fails until
// it is here.
func TestErrorsAreLessons(t *testing.T) {
	missing := exportedErrors(t)
	for name := range missing {
		if has(elsewhere, name) {
			delete(missing, name)
		}
	}
	if len(missing) < 40 {
		t.Fatal(missing)
	}
	last, got := "", new(strings.Builder)
	lessons := slices.Concat(managed(), logs(t), resources(), actions(), purged(t))
	slices.SortStableFunc(lessons, func(a, b lesson) int { return strings.Compare(a.name, b.name) })
	for _, l := range lessons {
		switch base := path.Base(l.name); {
		case l.err == nil:
			t.Errorf("%s, %s: no error", l.name, l.when)
			continue
		case l.is != nil && !errors.Is(l.err, l.is), l.is == nil && strings.Contains(base, ".") && !typed(l.err, l.name):
			t.Errorf("%s, %s: it is another error: %v", l.name, l.when, l.err)
		}
		delete(missing, l.name)
		if l.name != last {
			fmt.Fprintf(got, "\n%s\n", l.name)
		}
		last = l.name
		fmt.Fprintf(got, "  %s\n", l.when)
		text := regexp.MustCompile(`(/[^ :]*)?/TestErrorsAreLessons\d*/\d+`).ReplaceAllString(l.err.Error(), "DIR")
		text = strings.ReplaceAll(text, "process "+strconv.Itoa(os.Getpid()), "process PID")
		for line := range strings.Lines(text) {
			fmt.Fprintf(got, "    %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	for name := range missing {
		t.Errorf("%s is exported, and this test does not provoke it", name)
	}
	if *update {
		must(0, os.WriteFile(errorTexts, []byte(got.String()[1:]), 0o644))
	}
	if want := string(must(os.ReadFile(errorTexts))); got.String()[1:] != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.String()[1:], want)
	}
}
