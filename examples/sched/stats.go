package main

import (
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate/jobid"
)

// stats is what the summary prints.
type stats struct {
	adopted, allocated, denied, canceled, done int

	begin, now eventlog.Timestamp
	held       int64   // cores that jobs hold
	capacity   int64   // cores that there are
	used       float64 // core seconds held
	offered    float64 // core seconds that there were

	longest   eventlog.Timestamp // wait of a job that started, in seconds
	longestID jobid.ID           // which job
}

// until advances the time, with what is held now.
func (s *stats) until(now eventlog.Timestamp) {
	if s.begin == 0 {
		s.begin, s.now = now, now
	}
	passed := float64(now - s.now)
	s.used += passed * float64(s.held)
	s.offered += passed * float64(s.capacity)
	s.now = now
}

// start counts a job that starts.
func (s *stats) start(j *job, now eventlog.Timestamp) {
	s.allocated++
	if wait := now - j.since; wait > s.longest {
		s.longest, s.longestID = wait, j.id
	}
}

// summarize writes a summary for people.
func (s *session) summarize() {
	s.line = 0
	st := &s.stats
	s.errorf("%s allocated, %d denied, %d canceled, %s refused; %d adopted, %d done, %d running, %d waiting",
		lines.Count(st.allocated, "job"), st.denied, st.canceled, lines.Count(s.refused, "line"),
		st.adopted, st.done, len(s.jobs)-len(s.waiting), len(s.waiting))
	text := fmt.Sprintf("%.1f s", float64(st.now-st.begin))
	if st.offered > 0 {
		text += fmt.Sprintf(", %.1f %% of the cores in use", 100*st.used/st.offered)
	}
	if st.longest > 0 {
		text += fmt.Sprintf("; the longest wait was %.1f s, of %v", float64(st.longest), name(st.longestID))
	}
	s.errorf("%s", text)
}
