package dirstore

import (
	"errors"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/purge"
)

// Evidence returns what purge.Recover needs: it reads every job and folds its log.
// The caller sets Now. damaged has a *[JobError] for each job that cannot be read
// or folded; such a job counts as active, so that it is not purged. Evidence takes
// the time of [Store.Jobs] and [Store.Tombstones].
func (s *Store) Evidence() (ev purge.Evidence, damaged []error, err error) {
	for stored, err := range s.Jobs() {
		var bad *JobError
		if err != nil && !errors.As(err, &bad) {
			return purge.Evidence{}, nil, err
		}
		if bad == nil {
			j, err := jobstate.Replay(stored.ID, stored.Eventlog)
			if err != nil {
				bad = &JobError{ID: stored.ID, Err: err}
			} else if r, err := purge.RecordOf(j); err == nil {
				ev.Jobs = append(ev.Jobs, r)
				continue
			}
		}
		if bad != nil {
			damaged = append(damaged, bad)
		}
		ev.Active = append(ev.Active, stored.ID)
	}
	for r, err := range s.Tombstones() {
		if err != nil {
			return purge.Evidence{}, nil, err
		}
		ev.Tombstones = append(ev.Tombstones, r)
	}
	ev.Watermark = s.Watermark()
	return ev, damaged, nil
}
