package logfile_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
)

// A model is what a writer knows of its log, and two who follow it: one sees
// what is durable only, the other whatever is in the file.
type model struct {
	d      *disk
	policy logfile.SyncPolicy
	log    *logfile.Log // nil: none is open
	line   int          // the next one to write; none is written twice

	acked string // what was acknowledged as durable
	view  string // acked and what was appended since; what the file holds while a Log is open
	tried string // view and what a write or sync that failed may have left behind it

	durable, any *logfile.Reader
	seen         string // by durable, over all crashes
	anyFrom      int    // where any began
	anySeen      string
	cut          bool // something was taken out of the file since any was opened
}

// batch returns lines that were not written before.
func (m *model) batch(t *rapid.T) string {
	n := rapid.IntRange(0, 4).Draw(t, "lines")
	m.line += n
	return lines(m.line-n, m.line)
}

// open repairs and opens the log and checks what it holds.
func (m *model) open(t *rapid.T) {
	before := m.d.read(name)
	clear(m.d.locked) // the process before has ended
	log, err := logfile.Open(name, logfile.Options{FS: m.d, Policy: m.policy})
	if errors.Is(err, logfile.ErrDamaged) {
		if err = m.repair(t, before); err == nil {
			log, err = logfile.Open(name, logfile.Options{FS: m.d, Policy: m.policy})
		}
	}
	if err != nil {
		require.NotErrorIs(t, err, logfile.ErrDamaged)
		m.crash(t) // what if fsync failed here: see doc.go
		return
	}
	m.log = log
	m.check(t)
	m.acked, m.view = m.d.read(name), m.d.read(name)
	m.tried = m.view
	require.EqualValues(t, len(m.view), m.log.Size())
	require.Equal(t, m.log.Size(), m.log.Durable())
}

// repair repairs the log, which is damaged, and checks that no byte is lost.
func (m *model) repair(t *rapid.T, before string) error {
	done, err := logfile.Repair(name, logfile.RepairOptions{FS: m.d})
	var damage *logfile.DamageError
	if errors.As(err, &damage) {
		require.NotErrorIs(t, err, eventlog.ErrTorn)
		require.GreaterOrEqual(t, damage.Offset, int64(len(m.acked)), "durable entries are cut off")
		done, err = logfile.Repair(name, logfile.RepairOptions{FS: m.d, Cut: true})
	}
	if err == nil {
		require.Equal(t, before, m.d.read(name)+m.d.read(done.Side))
		m.cut = true
	}
	return err
}

// check checks what is in the file when no write is under way: what was
// acknowledged, then lines that were tried, from the first on; then, unless the
// log was repaired, anything.
func (m *model) check(t *rapid.T) {
	content := m.d.read(name)
	require.True(t, strings.HasPrefix(content, m.acked), "acknowledged %q, there is %q", m.acked, content)
	if m.log != nil {
		require.True(t, strings.HasPrefix(m.tried, content), "tried %q, there is %q", m.tried, content)
	}
}

// ended notes the outcome of an operation: a log that failed is opened anew.
func (m *model) ended(t *rapid.T, err error) {
	if !errors.Is(err, logfile.ErrFailed) {
		return
	}
	require.EqualValues(t, len(m.acked), m.log.Size())
	require.Equal(t, m.log.Size(), m.log.Durable())
	require.ErrorIs(t, m.log.Append([]byte(line(0))), logfile.ErrFailed)
	require.NoError(t, m.log.Close())
	m.failed(t, err)
}

// failed notes that a log failed, and is closed.
func (m *model) failed(t *rapid.T, err error) {
	m.log = nil
	m.view, m.cut = m.acked, true
	switch {
	case m.d.read(name) == m.acked:
	case errors.Is(err, errName):
		// It could not be looked at, and nothing was cut off.
	default:
		// It could not be cut. The system holds on to what may not be on the
		// disk: see doc.go.
		require.ErrorContains(t, err, "cutting off what is not durable")
		m.crash(t)
	}
}

// errName is the error of a name that cannot be looked at.
var errName = errors.New("name on fire")

func (m *model) append(t *rapid.T) {
	if m.log == nil {
		m.open(t)
		return
	}
	batch := m.batch(t)
	m.tried = m.view + batch
	err := m.log.Append([]byte(batch))
	if err == nil {
		m.view += batch
		if m.policy == logfile.SyncAlways {
			m.acked = m.view
		}
		return
	}
	m.cut = true
	m.ended(t, err)
	if m.log != nil {
		m.tried = m.view
	}
}

func (m *model) sync(t *rapid.T) {
	if m.log == nil {
		return
	}
	err := m.log.Sync()
	if err == nil {
		m.acked = m.view
		return
	}
	m.ended(t, err)
}

func (m *model) close(t *rapid.T) {
	if m.log == nil {
		return
	}
	log := m.log
	err := log.Close()
	m.log = nil
	if err == nil {
		m.acked = m.view
		return
	}
	require.ErrorIs(t, err, logfile.ErrFailed)
	m.failed(t, err)
}

// kill ends the process: what it wrote is still there, perhaps half a batch
// more.
func (m *model) kill(t *rapid.T) {
	if m.log == nil {
		return
	}
	batch := m.batch(t)
	n := m.d.names[name]
	half := batch[:rapid.IntRange(0, len(batch)).Draw(t, "half")]
	n.pending = append(n.pending, change{at: len(n.cache), data: []byte(half)})
	n.cache = append(n.cache, half...)
	m.tried = m.view + batch
	m.log, m.d.faults = nil, map[string][]fault{}
}

// crash ends the machine.
func (m *model) crash(t *rapid.T) {
	m.d.crash()
	m.log, m.any, m.cut = nil, nil, false
	m.durable = nil
	m.check(t)
}

func (m *model) fault(t *rapid.T) {
	op := rapid.SampledFrom([]string{"write", "write", "sync", "sync", "truncate", "stat", "statname", "syncdir", "read"}).Draw(t, "op")
	f := fault{err: errDisk}
	if op == "statname" {
		f.err = errName
	}
	if op == "write" {
		f.n = rapid.IntRange(0, 120).Draw(t, "n")
		if rapid.Bool().Draw(t, "short") && f.n < len(line(0)) {
			f.err = nil
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "pass") {
		m.d.fail(op, pass(op))
	}
	m.d.fail(op, f)
}

// follow reads on, and checks that what comes out is what is there.
func (m *model) follow(t *rapid.T) {
	if m.log == nil {
		return
	}
	m.d.faults = map[string][]fault{}
	var err error
	if m.durable == nil {
		m.durable, err = logfile.OpenReader(name, logfile.ReaderOptions{
			FS: m.d, Offset: int64(len(m.seen)), Limit: func() int64 { return m.log.Durable() },
		})
		require.NoError(t, err)
	}
	if m.any == nil {
		m.anyFrom, m.anySeen = 0, ""
		if rapid.Bool().Draw(t, "from now") {
			m.anyFrom = len(m.view)
		}
		m.any, err = logfile.OpenReader(name, logfile.ReaderOptions{FS: m.d, Offset: int64(m.anyFrom)})
		require.NoError(t, err)
	}
	m.seen += drain(t, m.durable, false)
	require.Equal(t, m.acked, m.seen, "each durable entry once, in order")

	text := drain(t, m.any, m.cut)
	m.anySeen += text
	if _, err := m.any.Next(); err != io.EOF {
		require.NotEqual(t, io.EOF, err)
		m.any, m.cut = nil, false
		return
	}
	require.Equal(t, m.view[m.anyFrom:], m.anySeen)
}

// drain returns what comes out of a Reader until there is no more for now, or
// until it notices that the file was cut, if it was.
func drain(t *rapid.T, r *logfile.Reader, cut bool) string {
	text, err := rest(t, r)
	if err == logfile.ErrEndOfHistory {
		var more string
		more, err = rest(t, r)
		text += more
	}
	if cut && errors.Is(err, logfile.ErrChanged) {
		return text
	}
	require.Equal(t, io.EOF, err)
	return text
}

// What was acknowledged is there, byte for byte, whatever fails and whenever the
// process or the machine ends; what was not is there in part and in order; and
// nobody reads anything else. EL-4, EL-5.
func TestWhatIsDurableSurvivesAnything(t *testing.T) {
	t.Log("EL-4, EL-5")
	for range 20 { // what is rare takes more runs than rapid does by itself
		rapid.Check(t, surviveAnything)
	}
}

func surviveAnything(t *rapid.T) {
	coins := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "coins"), 0))
	odds := rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.9, 1}).Draw(t, "odds that a sector gets to the disk")
	m := &model{
		d:      newDisk(),
		policy: rapid.SampledFrom([]logfile.SyncPolicy{logfile.SyncAlways, logfile.SyncGroup}).Draw(t, "policy"),
	}
	m.d.coin = func() bool { return coins.Float64() < odds }
	log, err := logfile.Create(name, logfile.Options{FS: m.d, Policy: m.policy})
	require.NoError(t, err)
	m.log = log
	t.Repeat(map[string]func(*rapid.T){
		"append":       m.append,
		"append again": m.append,
		"sync":         m.sync,
		"close":        m.close,
		"kill":         m.kill,
		"crash":        m.crash,
		"fault":        m.fault,
		"follow":       m.follow,
		"sync fails": func(t *rapid.T) {
			m.d.faults = map[string][]fault{"sync": {{err: errDisk}}}
			m.append(t)
			m.sync(t)
		},
		"full": func(t *rapid.T) {
			m.d.space = rapid.IntRange(-1, 200).Draw(t, "space")
		},
		"": m.check,
	})
}
