//go:build !race

package tidy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/disk"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/rset"
)

const id jobid.ID = 6731191091817518

const start = 1_700_000_000 // seconds since 1970

func second[T any](_ T, err error) error { return err }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// cores returns cores 0 and 1 of ranks, without hosts.
func cores(ranks ...uint32) *rset.R {
	return must(rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(ranks...), Children: map[string]*idset.Set{"core": idset.Of(0, 1)}}}}))
}

func spec(nodes int64) *jobspec.Spec {
	return must(jobspec.New(jobspec.Job{Nodes: nodes, Command: []string{"app"}}))
}

func specText(nodes int64) []byte { return must(spec(nodes).MarshalJSON()) }

// managed returns the errors of a Manager.
func managed() []lesson {
	now := time.Unix(start, 0)
	var rd joblife.Ready
	var faults []joblife.Fault
	step := func(m *joblife.Manager, inputs ...joblife.Input) (err error) {
		for _, in := range inputs {
			err = m.Step(now, in)
			for m.Ready(&rd) {
				faults = append(faults, rd.Faults...)
				must(0, m.Done(rd.Seq))
			}
		}
		return err
	}
	m := must(joblife.New(joblife.Config{MaxActive: 2, MaxLog: 400, Volatile: true, Hooks: []joblife.Hooks{{Name: "site", Validate: func(e *joblife.HookEvent) error {
		if e.Job.UserID() == 13 {
			return errors.New("user 13 has no account")
		}
		return nil
	}}}}))
	guest := joblife.Cred{UserID: 1000, Guest: true}
	submit := func(id jobid.ID) joblife.Submit { return joblife.Submit{ID: id, Spec: spec(1), Urgency: 16} }
	list := []lesson{
		{"joblife.ErrUnknown", "cancel of a job that is not there", joblife.ErrUnknown, step(m, joblife.Raise{ID: id, Type: "cancel"})},
		{"joblife.ErrInvalid", "a submission without a jobspec", joblife.ErrInvalid, step(m, joblife.Submit{ID: id})},
		{"joblife", "a jobspec without resources", nil, step(m, joblife.Submit{ID: id, Jobspec: []byte(`{"version":1,"tasks":[],"hosts":3}`)})},
		{"joblife.ErrInvalid", "an urgency out of range", joblife.ErrInvalid, step(m, joblife.Submit{ID: id, Spec: spec(1), Urgency: 99})},
		{"joblife.ErrInvalid", "an id that was given before", joblife.ErrInvalid, step(m, submit(id), submit(id))},
		{"joblife.ErrDenied", "a guest starts the queues", joblife.ErrDenied, step(m, joblife.StartQueue{All: true, By: guest})},
		{"joblife.ErrDenied", "a guest cancels a job of root", joblife.ErrDenied, step(m, joblife.Raise{ID: id, Type: "cancel", By: guest})},
		{"joblife.ErrRefused", "a hook refuses the user", joblife.ErrRefused, step(m, joblife.Submit{ID: id + 1, Spec: spec(1), Urgency: 16, By: joblife.Cred{UserID: 13}})},
		{"joblife.ErrRefused", "a queue that the instance does not have", joblife.ErrRefused,
			step(m, joblife.Submit{ID: id + 1, Spec: must(jobspec.New(jobspec.Job{Queue: "long", Command: []string{"app"}})), Urgency: 16})},
		{"joblife.ErrLater", "what a hook returns that validates later", joblife.ErrLater, joblife.ErrLater},
		{"joblife.ErrLimit", "one active job too many", joblife.ErrLimit, step(m, submit(id+1), submit(id+2))},
	}
	step(m, joblife.SchedHello{}, joblife.SchedReady{}, joblife.SchedResponse{ID: id, R: cores(0, 1)})
	list = append(list,
		lesson{"joblife.ErrConflict", "a scheduler gives a core twice", joblife.ErrConflict, step(m, joblife.SchedResponse{ID: id + 1, R: cores(1, 2)})},
		lesson{"joblife.ErrInactive", "the second cancel", joblife.ErrInactive, step(m, joblife.Raise{ID: id + 1, Type: "cancel"}, joblife.Raise{ID: id + 1, Type: "cancel"})},
		lesson{"joblife.ErrClock", "a clock that went back", joblife.ErrClock, m.Step(now.Add(-time.Hour), joblife.Tick{})})

	bad := must(joblife.New(joblife.Config{Volatile: true, Hooks: []joblife.Hooks{{Name: "site", Event: func(e *joblife.HookEvent) {
		e.Post(joblife.Raise{ID: id + 9, Type: "cancel"})
	}}}}))
	must(0, step(bad, submit(id)))
	list = append(list, lesson{"joblife.Fault", "a hook posts what is refused", nil, faults[0]})
	guestly := must(joblife.New(joblife.Config{MaxLog: 300}))
	step(guestly, joblife.Submit{ID: id, Spec: spec(1), Urgency: 16, By: guest})
	list = append(list, lesson{"joblife.ErrLimit", "a memo longer than the log may be", joblife.ErrLimit,
		step(guestly, joblife.Memo{ID: id, By: guest, Values: []byte(`{"a":"` + strings.Repeat("x", 300) + `"}`)})})

	gone := must(joblife.New(joblife.Config{}))
	if err := gone.Step(now, submit(id)); err == nil && gone.Ready(&rd) {
		must(0, gone.Abandon(rd.Seq))
	}
	list = append(list, lesson{"joblife.ErrAbandoned", "an input after Abandon", joblife.ErrAbandoned, gone.Step(now, joblife.Tick{})})

	config := loop.Config{MaxInputs: 1, Effects: func(*joblife.Manager, *joblife.Ready) {}, Refused: func(joblife.Input, error) {}}
	l := must(loop.New(must(joblife.New(joblife.Config{Volatile: true})), config))
	storeless := must(loop.New(must(joblife.New(joblife.Config{})), config))
	must(0, storeless.Put(submit(id)))
	full := errors.Join(l.Put(joblife.Tick{}), l.Put(joblife.Tick{}))
	ctx, stop := context.WithCancelCause(context.Background())
	stop(errors.New("the store is gone"))
	_ = l.Run(ctx)
	return append(list,
		lesson{"loop.ErrFull", "one input too many", loop.ErrFull, full},
		lesson{"loop.ErrEnded", "an input after the end", loop.ErrEnded, l.Put(joblife.Tick{})},
		lesson{"loop", "a Loop without a store", nil, storeless.Run(context.Background())},
		lesson{"loop", "a Loop without Effects", nil, second(loop.New(guestly, loop.Config{}))})
}

// logs returns the errors of logs, jobs and archives.
func logs(t *testing.T) []lesson {
	const submitted = `{"timestamp":1,"name":"submit","context":{"userid":0,"urgency":16,"flags":0,"version":1}}` + "\n"
	const validated = `{"timestamp":2,"name":"validate"}` + "\n"
	read := func(log string) error {
		for _, err := range eventlog.Entries([]byte(log)) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	replay := func(log string) error { return second(jobstate.Replay(id, []byte(log))) }
	list := []lesson{
		{"eventlog.ErrSyntax", "a line that is no JSON", eventlog.ErrSyntax, read(submitted + "submit\n")},
		{"eventlog.ErrEntry", "an event without a name", eventlog.ErrEntry, read(submitted + `{"timestamp":2}` + "\n")},
		{"eventlog.ErrTorn", "a crash within a write", eventlog.ErrTorn, read(submitted + validated[:20])},
		{"eventlog.ErrLimit", "too long a name", eventlog.ErrLimit, second(eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: 1, Name: strings.Repeat("x", 1<<20)}))},
		{"eventlog.SyntaxError", "two keys of one name", nil, read(`{"timestamp":1,"name":"a","name":"b"}` + "\n")},
		{"jobstate.ErrTransition", "a job that starts before it has resources", jobstate.ErrTransition, replay(submitted + validated + `{"timestamp":3,"name":"start"}` + "\n")},
		{"jobstate.EventError", "a log that goes on after its end", nil,
			replay(submitted + validated + `{"timestamp":2,"name":"exception","context":{"type":"cancel","severity":0,"note":""}}` + "\n" + `{"timestamp":3,"name":"clean"}` + "\n" + validated)},
		{"jobstate.EventError", "an event without a required key", nil, replay(submitted + validated + `{"timestamp":3,"name":"priority","context":{}}` + "\n")},
		{"jobstate.EventError", "a torn log", nil, replay(submitted + validated[:20])},
		{"jobstate/jobid", "no id", nil, second(jobid.Parse("ƒ0l"))},
		{"jobstate/fsd", "no duration", nil, second(fsd.Parse("5 minutes"))},
		{"jobstate/jobspec", "no tasks", nil, second(jobspec.Parse([]byte(`{"version":1,"resources":[],"attributes":{}}`)))},
		{"jobstate/jobspec", "a path that is no attribute", nil, second(spec(1).Update("tasks..command", []byte("1")))},
	}
	walk := func(text string, l archive.Limits) error {
		a, err := archive.Walk(strings.NewReader(text), l, func(archive.Job) error { return nil })
		for _, f := range a.Failures {
			err = errors.Join(err, f)
		}
		return err
	}
	dump := string(tarred("job/0017/e9fb/8df1/6c2e/eventlog", submitted+"validate\n", "job/0017/e9fb/8df1/6c2e/jobspec", "{}"))
	list = append(list,
		lesson{"jobstate/archive.Failure", "a job with a malformed log", nil, walk(dump, archive.Limits{})},
		lesson{"jobstate/archive.Failure", "a dump that was cut", nil, walk(dump[:1500], archive.Limits{})},
		lesson{"jobstate/archive", "no archive", nil, walk("PK\x03\x04"+strings.Repeat("x", 600), archive.Limits{})},
		lesson{"jobstate/archive", "too large an archive", nil, walk(dump, archive.Limits{Bytes: 600})})

	name := filepath.Join(t.TempDir(), "eventlog")
	l := must(logfile.Create(name, logfile.Options{MaxBatch: 200}))
	list = append(list,
		lesson{"eventlog/logfile.ErrBatch", "no whole line", logfile.ErrBatch, l.Append([]byte(validated[:20]))},
		lesson{"eventlog/logfile.ErrBatch", "too large a batch", logfile.ErrBatch, l.Append([]byte(strings.Repeat(validated, 9)))},
		lesson{"eventlog/logfile.ErrLocked", "a second writer", logfile.ErrLocked, second(logfile.Open(name, logfile.Options{}))})
	must(0, errors.Join(l.Append([]byte(submitted)), l.Close(), os.WriteFile(name, []byte(submitted+validated[:20]), 0o600)))
	list = append(list,
		lesson{"eventlog/logfile.ErrDamaged", "a torn log", logfile.ErrDamaged, second(logfile.Open(name, logfile.Options{}))})
	must(0, os.WriteFile(name, []byte(submitted+"x\n"+validated), 0o600))
	list = append(list,
		lesson{"eventlog/logfile.DamageError", "a log with a line that is no event", nil, second(logfile.Open(name, logfile.Options{}))},
		lesson{"eventlog/logfile.DamageError", "its repair, without Cut", nil, second(logfile.Repair(name, logfile.RepairOptions{}))})
	must(0, os.WriteFile(name, []byte(submitted), 0o600))
	r := must(logfile.OpenReader(name, logfile.ReaderOptions{}))
	_, _ = r.Next()
	list = append(list, lesson{"eventlog/logfile.ErrEndOfHistory", "a reader has read all that was there", logfile.ErrEndOfHistory, second(r.Next())})
	must(0, os.Truncate(name, 5))
	list = append(list, lesson{"eventlog/logfile.ErrChanged", "somebody cut the log", logfile.ErrChanged, second(r.Next())})

	d := disk.New()
	l = must(logfile.Create("job.log", logfile.Options{FS: d}))
	d.Fail("sync", disk.Fault{Err: errors.New("input/output error")})
	return append(list,
		lesson{"eventlog/logfile", "the disk fails", nil, l.Append([]byte(submitted))},
		lesson{"eventlog/logfile.ErrFailed", "and after that", logfile.ErrFailed, l.Append([]byte(submitted))})
}

func second2[T, U any](_ T, _ U, err error) error { return err }

// parseSpec returns a jobspec with resources.
func parseSpec(resources string) (*jobspec.Spec, error) {
	return jobspec.Parse([]byte(`{"version":1,"resources":` + resources + `,"tasks":[{"command":["app"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":0}}}`))
}
