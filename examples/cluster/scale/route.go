package main

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

const (
	tryTime   = 5 * time.Second // without an answer a submission is sent again
	pause     = time.Second     // before that, where no manager is
	claimTime = 2 * time.Millisecond
	firstUser = 1000
)

// route returns where a submission goes at its nth try.
func (w *world) route(j *job, n int) *instance {
	a, b := w.rng.IntN(w.Instances), w.rng.IntN(w.Instances)
	switch {
	case w.Route == "home":
		a = (j.user + n) % w.Instances
	case w.Route == "least":
		a = (slices.Index(w.seen, slices.Min(w.seen)) + n) % w.Instances
	case w.Route == "two" && w.seen[b] < w.seen[a]:
		a = b
	}
	return w.instances[a]
}

// submit sends a submission where a manager is: else it comes nowhere, and may go elsewhere. But
// one without an answer may be a job already, so Repeat says where it goes.
func (w *world) submit(j *job) {
	tries, moves := w.Instances, j.at == nil || w.Repeat == "elsewhere" || w.Repeat == "claim"
	if !moves {
		tries = 1
	}
	for n := range tries {
		in := j.at
		if moves {
			in = w.route(j, n)
		}
		if w.messages++; in.l != nil && (in != j.at || !moves) {
			w.send(j, in)
			return
		}
	}
	w.after(pause, func() { w.submit(j) })
}

func (w *world) send(j *job, in *instance) {
	j.at = in
	if in.doomed {
		in.doomed, in.dies, in.stores = false, true, w.rng.IntN(2) == 0
	}
	s := joblife.Submit{
		Tag: uint64(j.number + 1), By: joblife.Cred{UserID: uint32(firstUser + j.user), Guest: true}, Jobspec: j.text, Urgency: jobstate.UrgencyDefault,
	}
	if w.Repeat != "keyless" {
		s.Key = strconv.Itoa(j.number)
	}
	in.put(s)
	if j.id == 0 {
		w.after(tryTime, func() {
			if j.id == 0 {
				j.unanswered = true
				w.submit(j)
			}
		})
	}
}

func (w *world) answer(j *job, id jobid.ID) {
	if w.messages++; j.id == 0 {
		j.id, j.answer = id, w.now
	}
}

// claim asks a store for the key of a job that is durable, and in NEW. The first id that asks has
// the key, however often it asks: the manager does so again after a restart.
func (w *world) claim(in *instance, id jobid.ID) {
	j, l := in.submission(id), in.l
	w.messages += 2
	w.after(claimTime, func() {
		j.claim = cmp.Or(j.claim, id)
		if in.l != l {
			return // another manager is there, or none
		}
		var err error
		if j.claim != id {
			err = errors.New("another instance has this job")
		}
		in.put(joblife.Validated{ID: id, Err: err})
		w.answer(j, j.claim)
	})
}

// report tells the router how many jobs each instance has.
func (w *world) report() {
	for n, in := range w.instances {
		if in.l != nil {
			w.messages++
			states := in.m.Stats().States
			w.seen[n] = states[jobstate.StateSched] + states[jobstate.StateRun]
		}
	}
}

// exchange tells all instances what users have used, and gives jobs that wait their priority.
func (w *world) exchange() {
	total := make([]float64, w.Users)
	for _, in := range w.instances {
		for user, used := range in.used {
			total[user] += used
		}
	}
	for _, in := range w.instances {
		if w.Share == "all" {
			w.messages += 2 // to who adds, and back
			for user, used := range in.used {
				in.others[user] = total[user] - used
			}
		}
		var inputs []joblife.Input
		for v := range in.m.Jobs(jobstate.StateSched) {
			inputs = append(inputs, joblife.SetPriority{ID: v.ID(), Priority: in.priority(v)})
		}
		in.put(inputs...)
	}
}
