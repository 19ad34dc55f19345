package archive

import (
	"io"
	"slices"

	"github.com/joblife/joblife/jobstate/jobid"
)

// Walk reads an archive as Read does, but gives each job that can be used to a
// function and does not keep it: memory grows by the id of each job, and
// not with its size. The Archive has everything but the jobs.
//
// The jobs come in the order of the archive, which is by ascending id where Flux
// wrote it. The keys of a job must be together, as Flux writes them: a job that
// was given and then has another key is a Failure too.
//
// An error of the function ends reading, and Walk returns it as it is.
func Walk(r io.Reader, l Limits, give func(Job) error) (*Archive, error) {
	b := newBuilder(l)
	b.walk = walk{give: give, back: map[jobid.ID]bool{}, failed: map[jobid.ID]bool{}}
	err := b.read(r)
	return b.finish(), err
}

// walk is what Walk adds to a builder. It is zero for Read.
type walk struct {
	give     func(Job) error
	rising   []jobid.ID        // of jobs that were left, each above those before it: most, eight bytes each
	back     map[jobid.ID]bool // of those that were not above
	failed   map[jobid.ID]bool // of those in failures
	failures []*Failure
	stop     error // of the function
}

// wasLeft reports whether a job was left.
func (w *walk) wasLeft(id jobid.ID) bool {
	if len(w.rising) == 0 || id > w.rising[len(w.rising)-1] {
		return false
	}
	_, found := slices.BinarySearch(w.rising, id)
	return found || w.back[id]
}

// fail notes what is wrong with a job that was left.
func (w *walk) fail(d *draft) {
	w.failed[d.ID] = true
	w.failures = append(w.failures, d.failure)
}

// leave ends the job that is being read, if there is one.
func (b *builder) leave() error {
	d := b.in
	b.in = nil
	if d == nil || b.give == nil {
		return nil
	}
	delete(b.jobs, d.ID)
	b.held -= d.held
	if n := len(b.rising); n == 0 || d.ID > b.rising[n-1] {
		b.rising = append(b.rising, d.ID)
	} else {
		b.back[d.ID] = true
	}
	if d.check(); d.failure != nil {
		b.fail(d)
		return nil
	}
	b.stop = b.give(d.Job)
	return b.stop
}

// comesBack reports whether a key is of a job that was left. That job has failed if
// the key is one to keep.
func (b *builder) comesBack(p place, isDir bool) bool {
	if !b.wasLeft(p.id) {
		return false
	}
	d := draft{Job: Job{ID: p.id}}
	if !b.failed[p.id] && (d.value(p.key) != nil || p.key == "" && !isDir) {
		d.fail(0, errApart)
		b.fail(&d)
	}
	return true
}
