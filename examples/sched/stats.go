package main

import (
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
)

// stats is what the summary prints.
type stats struct {
	adopted, allocated, denied, canceled, done int

	begin, end eventlog.Timestamp
	held       int64   // cores that jobs hold
	capacity   int64   // cores that there are
	used       float64 // core seconds held
	offered    float64 // core seconds that there were

	longest   eventlog.Timestamp // wait of a job that started, in seconds
	longestID jobid.ID           // which job

	since map[jobid.ID]eventlog.Timestamp // when jobs began to wait
	cores map[jobid.ID]int64              // that jobs hold
}

func newStats() stats {
	return stats{since: make(map[jobid.ID]eventlog.Timestamp), cores: make(map[jobid.ID]int64)}
}

// counts are what flux module stats shows.
type counts struct {
	Pending   int `json:"pending_jobs"`
	Running   int `json:"running_jobs"`
	Adopted   int `json:"adopted"`
	Allocated int `json:"allocated"`
	Denied    int `json:"denied"`
	Canceled  int `json:"canceled"`
	Done      int `json:"done"`
	Refused   int `json:"refused"` // messages
}

func (s *session) counts() counts {
	st := &s.stats
	return counts{s.Len(), len(st.cores), st.adopted, st.allocated, st.denied, st.canceled, st.done, s.refused}
}

// until advances the time, with what is held now.
func (s *stats) until(now eventlog.Timestamp) {
	if s.begin == 0 {
		s.begin, s.end = now, now
	}
	passed := float64(now - s.end)
	s.used += passed * float64(s.held)
	s.offered += passed * float64(s.capacity)
	s.end = now
}

// hold notes that a job holds so many cores more.
func (s *stats) hold(id jobid.ID, cores int64) {
	s.cores[id] += cores
	s.held += cores
}

// took counts a message that the scheduler took, or refused with an error.
func (s *stats) took(m alloc.Message, err error, from *session) {
	switch m := m.(type) {
	case alloc.HelloResponse: // the error may be a report
		if _, again := s.cores[m.ID]; again || from.Pool() == nil {
			return
		}
		if h, ok := from.Pool().Allocation(m.ID); ok {
			s.adopted++
			s.hold(m.ID, h.Held.Count("core")+h.Gone.Count("core"))
		}
	case alloc.Request:
		if err == nil {
			s.since[m.ID] = from.now
			if m.Submit > 0 {
				s.since[m.ID] = m.Submit
			}
		}
	case alloc.Free:
		if err == nil && m.Final {
			s.hold(m.ID, -s.cores[m.ID])
			delete(s.cores, m.ID)
			s.done++
		} else if err == nil {
			s.hold(m.ID, -m.R.Count("core"))
		}
	}
}

// answered counts a response.
func (s *stats) answered(a alloc.Response, now eventlog.Timestamp) {
	switch a.Type {
	case alloc.ResponseAnnotate:
		return
	case alloc.ResponseSuccess:
		s.allocated++
		if wait := now - s.since[a.ID]; wait > s.longest {
			s.longest, s.longestID = wait, a.ID
		}
		s.hold(a.ID, a.R.Count("core"))
	case alloc.ResponseDeny:
		s.denied++
	case alloc.ResponseCancel:
		s.canceled++
	}
	delete(s.since, a.ID)
}

// summarize writes a summary for people.
func (s *session) summarize() {
	s.line = 0
	st := &s.stats
	s.logf(flux.LogInfo, "%s allocated, %d denied, %d canceled, %s refused; %d adopted, %d done, %d running, %d waiting",
		lines.Count(st.allocated, "job"), st.denied, st.canceled, lines.Count(s.refused, "line"),
		st.adopted, st.done, len(st.cores), s.Len())
	text := fmt.Sprintf("%.1f s", float64(st.end-st.begin))
	if st.offered > 0 {
		text += fmt.Sprintf(", %.1f %% of the cores in use", 100*st.used/st.offered)
	}
	if st.longest > 0 {
		text += fmt.Sprintf("; the longest wait was %.1f s, of job %d (%v)", float64(st.longest), uint64(st.longestID), st.longestID)
	}
	s.logf(flux.LogInfo, "%s", text)
}
