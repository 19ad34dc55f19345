package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// A size says how much is simulated.
type size struct {
	Instances, Nodes, Jobs, Users int
	Seed                          uint64
}

// A config says what is simulated.
type config struct {
	size
	Group, Name string
	Load        float64       // the work that comes, over what all nodes can do
	Route       string        // home, any, least or two
	Report      time.Duration // between two reports of an instance's load; 0: there are none
	Down        time.Duration // of each manager, about twice, at a submission; 0: never
	Repeat      string        // of a submission without an answer: same, keyless, elsewhere or claim
	Share       string        // the usage by which jobs get their priority: local, all, or "" for none
}

// A result is what is seen of a simulation. Times are seconds.
type result struct {
	config
	WaitMean, Wait95      float64 // from the first try of a submission to the start
	Busy                  float64 // part of the nodes' time, while jobs come
	Jain                  float64 // index of what users got meanwhile: 1 if all got the same
	Lost, Twice           int     // submissions whose job never ran, or ran more than once
	NoAnswer              int     // submissions that a manager got and did not answer
	AnswerMean, AnswerMax float64 // until those had an answer
	Messages              float64 // of routers, instances and the store of claims, for each job
	Inputs                float64 // of the managers, for each job
}

// A job is a submission, as the world knows it.
type job struct {
	number, user, nodes   int // number is its name in the jobspec
	run, limit            time.Duration
	text                  []byte // the jobspec
	arrive, began, answer time.Time
	at                    *instance // that may have it: it was sent there
	unanswered            bool
	id, claim             jobid.ID // by the answer, and by the store of claims
	runs, ends            int
}

// An event happens at a time.
type event struct {
	at time.Time
	do func()
}

type world struct {
	config
	rng       *rand.Rand // of routes and failures
	now, end  time.Time  // end: no jobs come any more
	events    []event    // in the order of time, the next one last
	periodic  int        // how many of them are
	jobs      []*job
	instances []*instance
	seen      []int     // jobs of each instance that are not over, by the last reports
	got       []float64 // node-seconds of each user until end
	messages  int
	inputs    uint64 // of managers that are no more
}

var epoch = time.Unix(1_700_000_000, 0).UTC()

// simulate panics if a manager breaks a promise.
func simulate(c config) *world {
	w := &world{config: c, rng: rand.New(rand.NewPCG(c.Seed, 2)), now: epoch, seen: make([]int, c.Instances), got: make([]float64, c.Users)}
	for n := range c.Instances {
		w.instances = append(w.instances, newInstance(w, n))
	}
	w.work(rand.New(rand.NewPCG(c.Seed, 1)))
	w.arrive(w.jobs)
	if c.Share != "" {
		w.every(time.Minute, w.exchange)
	}
	if c.Report > 0 {
		w.every(c.Report, w.report)
	}
	for range 2 * c.Instances {
		in, at := w.instances[w.rng.IntN(c.Instances)], time.Duration(w.rng.Float64()*float64(w.end.Sub(epoch)))
		if c.Down > 0 {
			w.after(at, func() { in.doomed = true })
		}
	}
	for len(w.events) > w.periodic {
		e := w.events[len(w.events)-1]
		w.events = w.events[:len(w.events)-1]
		w.now = e.at
		e.do()
	}
	return w
}

// work makes the jobs, in the order of time.
func (w *world) work(rng *rand.Rand) {
	const nodes, run = 2.375, 600 * float64(time.Second) // of a job, in the mean
	w.end = epoch
	for n := range w.Jobs {
		w.end = w.end.Add(time.Duration(rng.ExpFloat64() * nodes * run / (w.Load * float64(w.Instances*w.Nodes))))
		j := &job{number: n, arrive: w.end, nodes: 1 << max(0, rng.IntN(8)-4), run: time.Duration(rng.ExpFloat64() * run)}
		j.limit = time.Duration(float64(j.run)*(1+2*rng.Float64())).Truncate(time.Minute) + time.Minute
		if j.user = rng.IntN(6 * w.Users / 4); j.user < 3*w.Users/4 {
			j.user /= 3 // one of the first fourth
		} else {
			j.user -= w.Users / 2
		}
		spec, err := jobspec.New(jobspec.Job{
			Nodes: int64(j.nodes), Exclusive: true, Duration: j.limit, Command: []string{"app"}, Name: strconv.Itoa(n),
		})
		check(err)
		j.text, err = spec.MarshalJSON()
		check(err)
		w.jobs = append(w.jobs, j)
	}
}

// arrive submits the first job, and then the others.
func (w *world) arrive(jobs []*job) {
	if len(jobs) > 0 {
		w.after(jobs[0].arrive.Sub(w.now), func() {
			w.submit(jobs[0])
			w.arrive(jobs[1:])
		})
	}
}

// after has something done later, after what was planned before for that time.
func (w *world) after(d time.Duration, do func()) {
	e := event{w.now.Add(d), do}
	i, _ := slices.BinarySearchFunc(w.events, e, func(old, e event) int { return e.at.Compare(old.at) })
	w.events = slices.Insert(w.events, i, e)
}

// every has something done periodically, as long as there is anything else.
func (w *world) every(d time.Duration, do func()) {
	w.periodic++
	w.after(d, func() {
		w.periodic--
		do()
		w.every(d, do)
	})
}

func (w *world) result() result {
	r, waits, got, squares := result{config: w.config}, make([]float64, w.Jobs), 0.0, 0.0
	for n, j := range w.jobs {
		waits[n] = j.began.Sub(j.arrive).Seconds()
		r.WaitMean += waits[n] / float64(w.Jobs)
		r.Lost += max(0, 1-j.runs)
		r.Twice += max(0, j.runs-1)
		if late := j.answer.Sub(j.arrive).Seconds(); j.unanswered {
			r.NoAnswer++
			r.AnswerMean += (late - r.AnswerMean) / float64(r.NoAnswer)
			r.AnswerMax = max(r.AnswerMax, late)
		}
	}
	inputs := w.inputs
	for _, in := range w.instances {
		inputs += in.l.Stats().Inputs
	}
	for _, g := range w.got {
		got, squares = got+g, squares+g*g
	}
	slices.Sort(waits)
	r.Wait95, r.Messages, r.Inputs = waits[w.Jobs*95/100], float64(w.messages)/float64(w.Jobs), float64(inputs)/float64(w.Jobs)
	r.Busy, r.Jain = got/(float64(w.Instances*w.Nodes)*w.end.Sub(epoch).Seconds()), got*got/(float64(w.Users)*squares)
	return r
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
