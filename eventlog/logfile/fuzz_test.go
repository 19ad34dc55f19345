package logfile_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/disk"
)

// goodPart returns how much of a log is complete, and why not all of it.
func goodPart(log []byte) (int, error) {
	good := 0
	for _, err := range eventlog.Entries(log) {
		if err != nil {
			return good, err
		}
		good += bytes.IndexByte(log[good:], '\n') + 1
	}
	return good, nil
}

// requireReads checks that a Reader hands out the entries of the good part of a
// log, and after it what is wrong, if a line is, not if one is torn.
func requireReads(t *testing.T, d *disk.Disk, log []byte) {
	good, bad := goodPart(log)
	r := openReader(t, d, 0)
	var last []byte
	told := false
	for e, err := range eventlog.Entries(log[:good]) {
		require.NoError(t, err)
		start := r.Offset()
		got, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, e, got)
		line := log[start:r.Offset()]
		require.Equal(t, bytes.Equal(line, last), r.Duplicate())
		last = line
	}
	_, err := r.Next()
	if err == logfile.ErrEndOfHistory {
		told = true
		_, err = r.Next()
	}
	require.EqualValues(t, good, r.Offset())
	if bad == nil || errors.Is(bad, eventlog.ErrTorn) {
		require.Equal(t, io.EOF, err)
		require.True(t, told)
		return
	}
	require.False(t, told)
	var want, got *eventlog.SyntaxError
	require.ErrorAs(t, bad, &want)
	require.ErrorIs(t, err, logfile.ErrDamaged)
	require.ErrorAs(t, err, &got)
	require.Equal(t, want.Offset, got.Offset)
	require.Equal(t, want.Line, got.Line)
}

// FuzzOpen: any content is a log or a damaged one, and a damaged one can be
// repaired without losing a byte.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte(lines(0, 3)))
	f.Add([]byte(lines(0, 3) + "{torn"))
	f.Add([]byte(line(0) + line(0) + "garbage\n" + line(1)))
	f.Add([]byte(lines(0, 1) + strings.Repeat("\x00", 20) + lines(1, 2)))
	f.Add([]byte(lines(0, 2) + "garbage\n" + lines(2, 5) + "\x00\x00"))
	f.Add([]byte(lines(0, 2) + line(2)[:10] + "\n"))
	f.Add([]byte(lines(0, 2) + "\n"))
	f.Add([]byte(" {\"name\":\"x\" ,\"timestamp\":1, \"more\":[]}\n\n"))
	f.Fuzz(openAny)
}

func openAny(t *testing.T, content []byte) {
	d := with(string(content))
	good, bad := goodPart(content)
	requireReads(t, d, content)

	l, err := logfile.Open(name, logfile.Options{FS: d})
	require.Equal(t, bad == nil, err == nil)
	if err != nil {
		require.Nil(t, l)
		var damage *logfile.DamageError
		require.ErrorAs(t, err, &damage)
		require.EqualValues(t, good, damage.Offset)
		require.EqualValues(t, len(content), damage.Size)
		var syntax *eventlog.SyntaxError
		require.ErrorAs(t, err, &syntax)
		require.Equal(t, bad, syntax)

		_, err = logfile.Repair(name, logfile.RepairOptions{FS: d})
		require.Equal(t, errors.Is(bad, eventlog.ErrTorn), err == nil)
		if err != nil {
			require.ErrorIs(t, err, logfile.ErrDamaged)
			require.Equal(t, string(content), d.Read(name))
			require.Len(t, d.Files(), 1)
			done, err := logfile.Repair(name, logfile.RepairOptions{FS: d, Cut: true})
			require.NoError(t, err)
			require.Equal(t, damage.Entries, done.Entries)
		}
		require.Equal(t, string(content), d.Read(name)+d.Read(side(1)))
		requireEntries(t, damage.Entries, d.Read(side(1)))
		l = openLog(t, d)
	}
	require.EqualValues(t, good, l.Size())
	require.NoError(t, l.Close())
	syncs, files := d.Count("sync"), d.Files()
	done, err := logfile.Repair(name, logfile.RepairOptions{FS: d, Cut: true})
	require.NoError(t, err)
	require.Equal(t, logfile.Repaired{Offset: int64(good)}, done, "it does nothing to a log that is complete")
	require.Equal(t, syncs, d.Count("sync"))
	require.Equal(t, files, d.Files())
	l = openLog(t, d)
	require.NoError(t, l.Append([]byte(lines(0, 2))))
	d.Crash()
	require.Equal(t, string(content[:good])+lines(0, 2), d.Read(name))
	requireReads(t, d, []byte(d.Read(name)))
}

// requireEntries checks how many lines of a text are entries.
func requireEntries(t *testing.T, want int, text string) {
	n := 0
	for line := range strings.Lines(text) {
		if _, err := eventlog.Parse([]byte(line)); err == nil && strings.HasSuffix(line, "\n") {
			n++
		}
	}
	require.Equal(t, want, n)
}

// FuzzFollow: however a log grows, what comes out of a Reader is what comes out
// of one that reads it at the end; and a batch is what Append says.
func FuzzFollow(f *testing.F) {
	f.Add([]byte(lines(0, 4)), uint16(0), uint16(20), uint16(150))
	f.Add([]byte(lines(0, 4)+"{torn"), uint16(50), uint16(100), uint16(202))
	f.Add([]byte(lines(0, 2)+"garbage\n"+line(2)), uint16(30), uint16(108), uint16(1))
	f.Fuzz(func(t *testing.T, content []byte, a, b, c uint16) {
		good, bad := goodPart(content)
		if bad != nil && !errors.Is(bad, eventlog.ErrTorn) {
			d := with("")
			require.ErrorIs(t, openLog(t, d).Append(content), logfile.ErrBatch)
			require.Zero(t, d.Count("write"))
			content = content[:good]
		}
		d := with(string(content[:min(int(a), len(content))]))
		history := strings.LastIndexByte(d.Read(name), '\n') + 1
		from := logfile.End
		if c%2 == 0 {
			from = 0
		}
		r := openReader(t, d, from)
		if c%2 == 1 {
			require.EqualValues(t, history, r.Offset())
		}
		told := false
		for _, size := range []int{int(a), int(a) + int(b), int(a) + int(b) + int(c), len(content)} {
			d.Set(name, string(content[:max(len(d.Read(name)), min(size, len(content)))]))
			for {
				_, err := r.Next()
				switch {
				case err == logfile.ErrEndOfHistory:
					require.False(t, told)
					require.EqualValues(t, history, r.Offset())
					told = true
					continue
				case err == io.EOF:
					require.True(t, told)
				default:
					require.NoError(t, err)
					require.Equal(t, told, r.Offset() > int64(history))
					continue
				}
				break
			}
			require.EqualValues(t, strings.LastIndexByte(d.Read(name), '\n')+1, r.Offset())
		}
		require.EqualValues(t, good, r.Offset())
	})
}
