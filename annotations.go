package joblife

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate"
)

// annotations returns all annotations of a job, nil if there are none.
func (j *job) annotations() json.RawMessage {
	switch notes := j.has().notes; {
	case notes == nil:
		return j.job().Annotations()
	case len(notes) > 0:
		return notes
	}
	return nil
}

// merged returns the annotations of a job after an update by a valid object. The error says
// that they are too long for an event.
func (j *job) merged(patch []byte) (json.RawMessage, error) {
	notes, err := jobstate.MergeAnnotations(j.annotations(), patch)
	if err == nil {
		err = fits("annotations", notes, len(`{"annotations":}`))
	}
	return notes, err
}

// setNotes sets annotations of which the log does not tell. Since then it has all of them.
func (j *job) setNotes(notes json.RawMessage) {
	if notes == nil {
		notes = json.RawMessage{}
	}
	j.more().notes = notes
}

// annotate merges what the scheduler says of a job that waits. Annotations are for people:
// if long memos leave no room for them, the session of the scheduler goes on.
func (m *Manager) annotate(j *job, patch []byte) {
	notes, err := j.merged(patch)
	if err != nil {
		return
	}
	j.setNotes(notes)
	m.annotated(j, notes)
}

// annotated tells readers of the annotations of a job.
func (m *Manager) annotated(j *job, notes []byte) {
	if len(notes) == 0 {
		notes = []byte("null")
	}
	m.journalVolatile(j.id, eventAnnotations, slices.Concat([]byte(`{"annotations":`), notes, []byte("}")))
}

// unannotate drops what the scheduler has said of a job: all but memos.
func (m *Manager) unannotate(j *job) {
	old := j.has().notes
	if len(old) == 0 {
		return
	}
	var notes json.RawMessage
	doc := jsonobj.NewDoc(old)
	if memos := doc.Root().Member("user"); !memos.Absent() {
		notes = userNotes(memos.Raw())
	}
	if bytes.Equal(notes, old) {
		return
	}
	j.setNotes(notes)
	m.annotated(j, notes)
}

// memoed takes in a memo of the log. If it leaves no room for other annotations, the log
// alone tells again.
func (j *job) memoed(values []byte) {
	if j.has().notes == nil {
		return
	}
	notes, err := j.merged(userNotes(values))
	if err != nil {
		j.rare.notes = nil
		return
	}
	j.setNotes(notes)
}

// userNotes returns a memo as an update of annotations.
func userNotes(values []byte) []byte {
	return slices.Concat([]byte(`{"user":`), values, []byte("}"))
}
