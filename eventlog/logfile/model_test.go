package logfile_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/disk"
)

// A model is what a writer knows of its log, and one who follows it.
type model struct {
	d     *disk.Disk
	log   *logfile.Log // nil: none is open
	line  int          // the next one to write; none is written twice
	acked string       // what was acknowledged
	tried string       // that, and what a batch that failed may have left behind it

	reader *logfile.Reader
	from   int // where it began
	seen   string
	cut    bool // something was taken out of the file since it was opened
}

// batch returns lines that were not written before.
func (m *model) batch(t *rapid.T) string {
	n := rapid.IntRange(0, 4).Draw(t, "lines")
	m.line += n
	return lines(m.line-n, m.line)
}

// open repairs and opens the log and checks what it holds.
func (m *model) open(t *rapid.T) {
	before := m.d.Read(name)
	m.d.Kill()
	log, err := logfile.Open(name, logfile.Options{FS: m.d})
	if errors.Is(err, logfile.ErrDamaged) {
		if err = m.repair(t, before); err == nil {
			log, err = logfile.Open(name, logfile.Options{FS: m.d})
		}
	}
	if err != nil {
		require.NotErrorIs(t, err, logfile.ErrDamaged)
		m.crash(t) // what if fsync failed here: see doc.go
		return
	}
	m.log = log
	m.check(t)
	m.acked = m.d.Read(name)
	m.tried = m.acked
	require.EqualValues(t, len(m.acked), m.log.Size())
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
		require.Equal(t, before, m.d.Read(name)+m.d.Read(done.Side))
		m.cut = true
	}
	return err
}

// check checks what is in the file when no write is under way: what was
// acknowledged, then lines that were tried, from the first on; then, unless the
// log was repaired, anything.
func (m *model) check(t *rapid.T) {
	content := m.d.Read(name)
	require.True(t, strings.HasPrefix(content, m.acked), "acknowledged %q, there is %q", m.acked, content)
	if m.log != nil {
		require.True(t, strings.HasPrefix(m.tried, content), "tried %q, there is %q", m.tried, content)
	}
}

// errName is the error of a name that cannot be looked at.
var errName = errors.New("name on fire")

func (m *model) append(t *rapid.T) {
	if m.log == nil {
		m.open(t)
		return
	}
	m.tried = m.acked + m.batch(t)
	err := m.log.Append([]byte(m.tried[len(m.acked):]))
	if err == nil {
		m.acked = m.tried
		return
	}
	m.cut = true
	require.EqualValues(t, len(m.acked), m.log.Size())
	if !errors.Is(err, logfile.ErrFailed) {
		m.tried = m.acked
		return
	}
	require.ErrorIs(t, m.log.Append([]byte(line(0))), logfile.ErrFailed)
	m.close(t)
	switch {
	case m.d.Read(name) == m.acked:
	case errors.Is(err, errName):
		// It could not be looked at, and nothing was cut off.
	default:
		// It could not be cut. The system holds on to what may not be on the
		// disk: see doc.go.
		require.ErrorContains(t, err, "cutting off what is not durable")
		m.crash(t)
	}
}

func (m *model) close(t *rapid.T) {
	if m.log != nil {
		require.NoError(t, m.log.Close())
	}
	m.log = nil
}

// kill ends the process: what it wrote is still there, perhaps half a batch
// more.
func (m *model) kill(t *rapid.T) {
	if m.log == nil {
		return
	}
	batch := m.batch(t)
	m.d.Write(name, len(m.d.Read(name)), batch[:rapid.IntRange(0, len(batch)).Draw(t, "half")])
	m.tried = m.acked + batch
	m.log = nil
	m.d.Heal()
}

// crash ends the machine.
func (m *model) crash(t *rapid.T) {
	m.d.Crash()
	m.log, m.reader, m.cut = nil, nil, false
	m.check(t)
}

// stop ends the machine amid an append, or amid what a restart does.
func (m *model) stop(t *rapid.T) {
	m.d.Heal()
	m.d.StopAt(rapid.IntRange(1, 25).Draw(t, "call"))
	if m.log == nil {
		m.d.Kill()
		for _, cut := range []bool{false, true} {
			_, _ = logfile.Repair(name, logfile.RepairOptions{FS: m.d, Cut: cut})
		}
		_, _ = logfile.Open(name, logfile.Options{FS: m.d})
	} else {
		m.tried = m.acked + m.batch(t)
		if m.log.Append([]byte(m.tried[len(m.acked):])) == nil {
			m.acked = m.tried
		}
	}
	m.crash(t)
}

func (m *model) fault(t *rapid.T) {
	op := rapid.SampledFrom([]string{"write", "write", "sync", "sync", "truncate", "stat", "statname", "syncdir", "read"}).Draw(t, "op")
	f := disk.Fault{Err: errDisk}
	if op == "statname" {
		f.Err = errName
	}
	if op == "write" {
		f.N = rapid.IntRange(0, 120).Draw(t, "n")
		if rapid.Bool().Draw(t, "short") && f.N < len(line(0)) {
			f.Err = nil
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "pass") {
		m.d.Fail(op, disk.Fault{N: 1 << 20}) // that is none
	}
	m.d.Fail(op, f)
}

// follow reads on, and checks that what comes out is what is there, unless the
// Reader notices that the file was cut.
func (m *model) follow(t *rapid.T) {
	if m.log == nil {
		return
	}
	m.d.Heal()
	if m.reader == nil {
		m.from, m.seen = 0, ""
		if rapid.Bool().Draw(t, "from now") {
			m.from = len(m.acked)
		}
		m.reader = openReader(t, m.d, int64(m.from))
	}
	text, err := rest(t, m.reader)
	m.seen += text
	if err == logfile.ErrEndOfHistory {
		text, err = rest(t, m.reader)
		m.seen += text
	}
	if m.cut && errors.Is(err, logfile.ErrChanged) {
		m.reader, m.cut = nil, false
		return
	}
	require.Equal(t, io.EOF, err)
	require.Equal(t, m.acked[m.from:], m.seen, "each entry once, in order")
}

// What was acknowledged is there, byte for byte, whatever fails and whenever the
// process or the machine ends; what was not is there in part and in order; and
// nobody reads anything else. EL-4, EL-5.
func TestWhatIsDurableSurvivesAnything(t *testing.T) {
	times := 5
	if os.Getenv("JOBLIFE_DEEP") != "" { // what is rare takes more runs than rapid does by itself
		times = 100
	}
	for range times {
		rapid.Check(t, surviveAnything)
	}
}

func surviveAnything(t *rapid.T) {
	m := &model{d: disk.New()}
	m.d.Coin = disk.Coins(rapid.Uint64().Draw(t, "coins"))
	log, err := logfile.Create(name, logfile.Options{FS: m.d})
	require.NoError(t, err)
	m.log = log
	t.Repeat(map[string]func(*rapid.T){
		"append": m.append, "append again": m.append, "append more": m.append,
		"close": m.close, "kill": m.kill, "crash": m.crash, "stop": m.stop, "fault": m.fault, "follow": m.follow,
		"sync fails": func(t *rapid.T) {
			m.d.Fail("sync", disk.Fault{Err: errDisk})
			m.append(t)
		},
		"": m.check,
	})
}
