package reader

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// How much a page shows.
const (
	maxActive = 200
	maxOver   = 100
	maxNodes  = 1000
	maxRows   = 60
	window    = 6 * time.Hour // at most
	points    = 180           // of the utilization
	maxDrawn  = 200_000       // jobs that it looks at
)

// A home is the first page.
type home struct {
	Instance  wire.Instance
	All       bool   // the visitor has the token
	Problem   string // the manager does not answer
	Status    *wire.Status
	States    []string
	Over      int
	Active    []wire.JobInfo
	More      int // active jobs that are not shown
	Ended     []wire.JobInfo
	Nodes     []wire.Node
	MoreNodes int
	Use       *use
}

func (r *reader) overview(ctx context.Context, all bool) *home {
	p := &home{Instance: r.Engine.Instance, All: all, Over: r.Len(), States: []string{"DEPEND", "PRIORITY", "SCHED", "RUN", "CLEANUP"}}
	status, err := r.ask(ctx, "status")
	p.Status = status.Status
	var active, nodes wire.Answer
	if err == nil {
		active, err = r.ask(ctx, "jobs")
	}
	if err == nil {
		nodes, err = r.ask(ctx, "nodes")
	}
	if err != nil {
		p.Problem = "The active manager does not answer. What follows is from the log."
	}
	p.Use = r.uses(active.Jobs)
	if !all {
		return p
	}
	p.Active, p.More = head(active.Jobs, maxActive)
	p.Nodes, p.MoreNodes = head(nodes.Nodes, maxNodes)
	r.list(&wire.Request{}, func(j *wire.JobInfo) bool {
		p.Ended = append(p.Ended, *j)
		return len(p.Ended) < maxOver
	})
	return p
}

func head[T any](list []T, n int) (first []T, more int) {
	return list[:min(n, len(list))], max(0, len(list)-n)
}

// A use is how many cores jobs used, as a picture.
type use struct {
	Since string
	Path  string // in a box of points times 100
	Now   int    // percent
	Mean  int    // of the window
	Cores int64
}

// spans are how much time the picture may show: the least that has all jobs of the last window.
var spans = []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour}

// utilization adds up, for each part of what it shows, the cores of the jobs that ran then.
func (r *reader) utilization(now time.Time, active []wire.JobInfo) *use {
	total := r.Nodes.Count("core")
	if total <= 0 {
		return nil
	}
	u, end, seen := &use{Cores: total}, float64(eventlog.FromTime(now)), 0
	var ran []struct{ from, to, cores float64 }
	longest := 0.0
	add := func(j *wire.JobInfo) bool {
		from, to := max(float64(j.Run), end-window.Seconds()), float64(j.Cleanup)
		if to == 0 {
			to = end
			u.Now += int(j.NCores)
		}
		if j.Run > 0 && j.NCores > 0 && from < to {
			ran = append(ran, struct{ from, to, cores float64 }{from, to, float64(j.NCores)})
			longest = max(longest, end-from)
		}
		seen++
		return seen < maxDrawn
	}
	for i := range active {
		add(&active[i])
	}
	r.list(&wire.Request{Since: eventlog.FromTime(now.Add(-window))}, add)
	shown := window
	if i := slices.IndexFunc(spans, func(d time.Duration) bool { return longest <= d.Seconds() }); i >= 0 && longest > 0 {
		shown = spans[i]
	}
	var sums [points]float64 // core seconds
	begin, width := end-shown.Seconds(), shown.Seconds()/points
	for _, j := range ran {
		from, to := (j.from-begin)/width, min(points, (j.to-begin)/width)
		for i := int(from); float64(i) < to; i++ {
			sums[i] += (min(to, float64(i+1)) - max(from, float64(i))) * width * j.cores
		}
	}
	u.Now = u.Now * 100 / int(total)
	var path strings.Builder
	mean := 0.0
	before := "V100"
	path.WriteString("M0 100")
	for i, sum := range sums {
		part := min(1, sum/width/float64(total))
		mean += part / points
		if level := fmt.Sprintf("V%.4g", 100*(1-part)); level != before {
			fmt.Fprintf(&path, "H%d%s", i, level)
			before = level
		}
	}
	fmt.Fprintf(&path, "H%dV100Z", points)
	u.Path, u.Mean = path.String(), int(math.Round(100*mean))
	form := "15:04"
	if shown < 10*time.Minute {
		form = time.TimeOnly
	}
	u.Since = now.Add(-shown).Format(form)
	return u
}

// A jobPage is the page of a job.
type jobPage struct {
	Instance wire.Instance
	wire.JobInfo
	Begin  time.Time
	Length time.Duration
	Rows   []row
	Events []event
}

// A row is a line of the picture. What it shows was from X on, in thousandths of the width.
type row struct {
	Label, Class string
	X, Width     float64
	open         bool // it goes on
}

type event struct {
	X, After      float64 // After is seconds since the first
	Name, Context string
}

// onePage shows a job that the manager has a log of, or the archive.
func (r *reader) onePage(ctx context.Context, id jobid.ID) (*jobPage, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	p := &jobPage{Instance: r.Engine.Instance}
	if info, ok := r.get(id); ok {
		a, err := r.Engine.Archived(ctx, info.UserID, id)
		if err != nil {
			return nil, err
		}
		p.JobInfo = a.JobInfo
	} else if r.Client == nil {
		return nil, fmt.Errorf("job %v is not over, or is not known", id)
	} else if info, err := r.Client.Job(ctx, id); err != nil {
		return nil, err
	} else {
		p.JobInfo = info
	}
	return p, p.draw(time.Now())
}

// draw makes a row of each state and of each action.
func (p *jobPage) draw(now time.Time) error {
	var first, last float64
	begin := func(label, class string) {
		if len(p.Rows) < maxRows {
			p.Rows = append(p.Rows, row{Label: label, Class: class, X: last - first, open: true})
		}
	}
	end := func(label string) { // "": all
		for i := range p.Rows {
			if r := &p.Rows[i]; r.open && (label == "" || label == r.Label) {
				r.Width, r.open = last-first-r.X, false
			}
		}
	}
	job := jobstate.NewJob(p.ID)
	for e, err := range eventlog.Entries([]byte(p.Eventlog)) {
		if err != nil {
			return err
		}
		if last = float64(e.Timestamp); first == 0 {
			first = last
		}
		before := job.State()
		_, _ = job.Apply(e) // lines may be missing
		if after := job.State(); after != before {
			if end(before.String()); after != jobstate.StateInactive {
				begin(after.String(), after.String())
			}
		}
		if kind, part, _ := strings.Cut(e.Name, "-"); kind == "prolog" || kind == "epilog" {
			var of struct{ Description string }
			_ = json.Unmarshal(e.Context, &of)
			switch label := kind + " " + of.Description; part {
			case "start":
				begin(label, kind)
			case "finish":
				end(label)
			}
		}
		p.Events = append(p.Events, event{After: last - first, Name: e.Name, Context: string(e.Context)})
	}
	if p.Inactive == 0 {
		last = max(last, float64(eventlog.FromTime(now)))
	}
	end("")
	p.Begin, p.Length = eventlog.Timestamp(first).Time(), time.Duration((last-first)*1e3)*time.Millisecond
	scale := 1000 / max(last-first, 1e-3)
	for i := range p.Rows {
		r := &p.Rows[i]
		r.X, r.Width = min(r.X*scale, 997), max(r.Width*scale, 3)
	}
	for i := range p.Events {
		p.Events[i].X = min(p.Events[i].After*scale, 997)
	}
	return nil
}

func clock(t eventlog.Timestamp) string {
	if t == 0 {
		return "–"
	}
	if at := t.Time().Local(); time.Since(at) > 20*time.Hour {
		return at.Format("2 Jan 15:04")
	}
	return t.Time().Local().Format(time.TimeOnly)
}

func ago(t eventlog.Timestamp) string { return time.Since(t.Time()).Round(time.Second).String() }

// took is how long a job has run.
func took(j wire.JobInfo) string {
	switch {
	case j.Run == 0:
		return "–"
	case j.Cleanup == 0:
		return ago(j.Run)
	}
	return j.Cleanup.Time().Sub(j.Run.Time()).Round(time.Millisecond).String()
}
