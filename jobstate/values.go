package jobstate

import (
	"math"
	"strconv"
	"time"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/fsd"
)

// scratch is what decoding reuses.
type scratch struct {
	action ActionKind // of the event, if it is of an action
	ranks  *idset.Set // what the key ranks names
	failed *FailedRanks
	names  []string
	texts  [8]string // the last texts read
	next   uint8     // which of texts is replaced next
}

// text reads a string.
func (m *scratch) text(v jsonobj.Value) string { return m.intern(v.TextBytes()) }

// intern returns a string, and allocates it unless it is short and one of the last that were read.
func (m *scratch) intern(b []byte) string {
	if len(b) > 64 {
		return string(b)
	}
	for i := range m.texts {
		if m.texts[i] == string(b) {
			return m.texts[i]
		}
	}
	s := string(b)
	m.texts[m.next] = s
	m.next = (m.next + 1) % uint8(len(m.texts))
	return s
}

// list reads an array of strings. The slice is reused.
func (m *scratch) list(v jsonobj.Value) []string {
	m.names = m.names[:0]
	for a := v.Array(); a.Next(); {
		m.names = append(m.names, m.text(a.Value()))
	}
	return m.names
}

// set reads an idset. The set is reused.
func (m *scratch) set(v jsonobj.Value) *idset.Set {
	if err := m.readRanks(v.TextBytes()); err != nil {
		v.Fail(err)
	}
	return m.ranks
}

// readRanks sets ranks to a text.
func (m *scratch) readRanks(text []byte) error {
	if m.ranks == nil {
		m.ranks = new(idset.Set)
	}
	return m.ranks.UnmarshalText(text)
}

// seconds reads a duration in seconds, not negative: exactly if it has at most nine decimals and
// no exponent, else rounded to the nanosecond, but never to zero.
func seconds(v jsonobj.Value) time.Duration {
	v.Float(0, float64(math.MaxInt64)/1e9)
	d, _ := fsd.Parse(string(v.Raw())) // which reads a number as seconds
	return time.Duration(d)
}

// writeSeconds appends a duration as a real number of seconds, exactly, and nothing for 0.
func writeSeconds(w *jsonobj.Writer, key string, d time.Duration) {
	if d == 0 {
		return
	}
	if d < 0 {
		w.Fail(key, jsonobj.ErrRange)
		return
	}
	w.Key(key)
	w.Out = append(strconv.AppendInt(w.Out, int64(d/time.Second), 10), '.')
	start := len(w.Out)
	w.Out = strconv.AppendInt(w.Out, int64(d%time.Second+time.Second), 10)
	w.Out = append(w.Out[:start], w.Out[start+1:]...) // the 1 that made nine digits of it
	for len(w.Out) > start+1 && w.Out[len(w.Out)-1] == '0' {
		w.Out = w.Out[:len(w.Out)-1]
	}
}

func writeSet(w *jsonobj.Writer, s *idset.Set) {
	w.Key("ranks")
	w.Out = append(w.Out, '"')
	w.Out, _ = s.AppendText(w.Out)
	w.Out = append(w.Out, '"')
}
