package joblife

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A RecordKind says what a [Record] is. The zero RecordKind is invalid.
type RecordKind uint8

// The kinds of records.
const (
	RecordEvent        RecordKind = 1 + iota // a line of the job's eventlog, newline included
	RecordJobspec                            // the jobspec as it was submitted, before the event submit
	RecordR                                  // the allocation, before the event alloc; with the key scheduling, if there is room
	RecordHousekeeping                       // a line of the log of the job's housekeeping
	RecordInactive                           // in snapshots: an inactive job, in the text of jobstate.Summary
	RecordTombstone                          // what remains of a job that is being purged, in that text; empty: it expired
	RecordUnlinked                           // the job is gone from the store; no Data
	RecordWatermark                          // ids up to it do not come back, in the text of purge.AppendWatermark; Job is 0
	RecordQueue                              // the state of a queue, a JSON object; Job is 0
	RecordKey                                // in snapshots: the Submit.Key of an inactive job, and its user, as a JSON object
)

// String returns the name, such as "event" or "R"; another value prints as RecordKind(n).
func (k RecordKind) String() string {
	return guard.Name("RecordKind", k,
		"event", "jobspec", "R", "housekeeping", "inactive", "tombstone", "unlinked", "watermark", "queue", "key")
}

// A Record is one thing to store. A store may keep all records in one log, in their
// order, or those of each job apart: [Restore] needs only the order of records of one job
// and kind, and the first record of a job's housekeeping before its event clean.
type Record struct {
	Time eventlog.Timestamp // of the Step that made it
	Job  jobid.ID           // 0 for the instance
	Kind RecordKind
	// sound is set if Data was checked, since a Manager made it or it was read.
	sound bool
	Data  []byte
}

// Clone returns a copy that lives longer than the Ready.
func (r Record) Clone() Record {
	r.Data = bytes.Clone(r.Data)
	return r
}

// holdsJSON reports whether Data is JSON, and not a text of its own.
func (k RecordKind) holdsJSON() bool {
	switch k {
	case RecordEvent, RecordJobspec, RecordR, RecordHousekeeping, RecordQueue, RecordKey:
		return true
	}
	return false
}

func (r Record) appendText(dst []byte, f *frame) ([]byte, error) {
	e := eventlog.Entry{Timestamp: r.Time, Name: r.Kind.String()}
	out, _, err := f.line(dst, &e)
	if err != nil {
		return dst, err
	}
	// The context is written in its place, and not checked a second time.
	out = append(out[:len(out)-len("}\n")], `,"context":`...)
	out, err = r.appendContext(out, eventlog.DefaultMaxDepth-1)
	if err == nil && len(out)+len("}") <= len(dst)+eventlog.DefaultMaxLine {
		return append(out, "}\n"...), nil
	}
	if e.Context, err = r.appendContext(nil, 0); err != nil {
		return dst, fmt.Errorf("joblife: record of %v: %w", r.Job, err)
	}
	return eventlog.AppendEntry(dst, e) // which names the limit
}

func (r Record) appendContext(dst []byte, depth int) ([]byte, error) {
	w := jsonobj.Write(dst, depth)
	if r.Job != 0 {
		w.Key("job")
		w.Out = append(w.Out, '"')
		w.Out, _ = r.Job.AppendText(w.Out) // which never fails
		w.Out = append(w.Out, '"')
	}
	switch {
	case r.Kind.holdsJSON() && r.sound && depth > 0: // or else a limit is to be named
		w.Key("data")
		w.Out = appendDense(w.Out, bytes.TrimSuffix(r.Data, []byte("\n")))
	case r.Kind.holdsJSON():
		w.Raw("data", r.Data)
	case r.Kind != RecordUnlinked || len(r.Data) > 0:
		w.Text("data", string(r.Data))
	}
	w.Key("crc32c")
	sum := r.sum(w.Out[len(dst) : len(w.Out)+len(`"`)-len(sumKey)])
	w.Out = append(w.Out, '"')
	for shift := 28; shift >= 0; shift -= 4 {
		w.Out = append(w.Out, "0123456789abcdef"[sum>>shift&15])
	}
	w.Out = append(w.Out, '"')
	return w.End()
}

// sumKey begins the check digits (CRC-32C), which end a context.
const sumKey = `"crc32c":"`

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum returns the check digits of a line: of its kind, its time, and its context up to them.
func (r Record) sum(context []byte) uint32 {
	sum := uint32(r.Kind)
	for at, shift := math.Float64bits(float64(r.Time)), 0; shift < 64; shift += 8 { // without a buffer
		sum = castagnoli[byte(sum)^byte(at>>shift)] ^ sum>>8
	}
	return crc32.Update(sum, castagnoli, context)
}

func appendDense(dst, data []byte) []byte {
	for _, c := range []byte(" \t\r\n") {
		if bytes.IndexByte(data, c) >= 0 { // perhaps in a string
			return jsonobj.AppendCompact(dst, data)
		}
	}
	return append(dst, data...)
}

// AppendRecords appends records, such as those of Ready.Append, as lines that are entries of
// RFC 18, as a logfile.Log takes them: the name is the kind, and the context has job, data
// and check digits. JSON is written without white space. The error is one of package
// eventlog, or names the value at fault; then dst is returned as it was.
func AppendRecords(dst []byte, records []Record) ([]byte, error) {
	var f frame
	out := dst
	for _, r := range records {
		var err error
		if out, err = r.appendText(out, &f); err != nil {
			return dst, err
		}
	}
	return out, nil
}

// maxRecordLine is how long a line of a record may be, whoever wrote it.
const maxRecordLine = 64 << 20

// ReadRecords yields the records of lines that AppendRecords has written. It ends at the
// first error, which names the line; the lines before are good. A last line that a crash
// cut short is eventlog.ErrTorn. ReadRecords verifies the check digits of a line, if it has
// some: to repair a line by hand, leave them out. It does not notice that lines are missing.
func ReadRecords(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		d := eventlog.NewDecoder(r, eventlog.DecoderOptions{MaxLine: maxRecordLine})
		for e, err := range d.All() {
			var out Record
			if err == nil {
				if err = out.read(e); err != nil {
					err = fmt.Errorf("joblife: line %d: %w", d.Line(), err)
				}
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

func (r *Record) read(e eventlog.Entry) error {
	out := Record{Time: e.Timestamp, sound: true}
	for out.Kind = RecordEvent; out.Kind <= RecordKey && out.Kind.String() != e.Name; {
		out.Kind++
	}
	if out.Kind > RecordKey {
		return fmt.Errorf("%w: a record of kind %s", ErrInvalid, guard.Quote(e.Name))
	}
	n := max(0, len(e.Context)-len(sumKey+`00000000"}`))
	if digits, ok := bytes.CutPrefix(e.Context[n:], []byte(sumKey)); ok {
		if sum, err := strconv.ParseUint(string(digits[:8]), 16, 32); err != nil || uint32(sum) != out.sum(e.Context[:n]) {
			return fmt.Errorf("joblife: %v record: offset %d: %w: the check digits do not match", out.Kind, n, ErrInvalid)
		}
	}
	d := jsonobj.NewDoc(e.Context)
	o := d.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "job":
			out.Job = jsonobj.Parse(o.Value(), jobid.Parse)
		case "data":
			if out.Kind.holdsJSON() {
				out.Data = bytes.Clone(o.Value().Raw())
			} else {
				out.Data = []byte(o.Text())
			}
		}
	}
	if out.Kind == RecordUnlinked {
		o.Require("job")
	} else {
		o.Require("data")
	}
	if err := d.Err(); err != nil {
		return fmt.Errorf("joblife: %v record: %w", out.Kind, err)
	}
	if out.Kind == RecordEvent || out.Kind == RecordHousekeeping {
		out.Data = append(out.Data, '\n')
	}
	*r = out
	return nil
}

func textOf(rec jobstate.Summary) []byte {
	b, err := rec.MarshalText()
	must("a record that cannot be written", err)
	return b
}
