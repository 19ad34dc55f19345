package logfile_test

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/disk"
)

// openReader opens a Reader of the log on a disk.
func openReader(t require.TestingT, d *disk.Disk, offset int64) *logfile.Reader {
	r, err := logfile.OpenReader(name, logfile.ReaderOptions{FS: d, Offset: offset})
	require.NoError(t, err)
	return r
}

// next returns what Next does as text: the line, or the error.
func next(t require.TestingT, r *logfile.Reader) string {
	before := r.Offset()
	e, err := r.Next()
	if err != nil {
		require.Equal(t, eventlog.Entry{}, e)
		require.Equal(t, before, r.Offset())
		return err.Error()
	}
	b, err := eventlog.AppendEntry(nil, e)
	require.NoError(t, err)
	require.Equal(t, before+int64(len(b)), r.Offset())
	return string(b)
}

// rest returns what Next returns up to an error, and the error.
func rest(t require.TestingT, r *logfile.Reader) (string, error) {
	var b strings.Builder
	for {
		e, err := r.Next()
		if err != nil {
			return b.String(), err
		}
		text, err := eventlog.AppendEntry(nil, e)
		require.NoError(t, err)
		b.Write(text)
	}
}

const endOfHistory = "logfile: end of history"

// EL-5: each event once, in order, and where the history ends: it is what was complete when
// the Reader was opened.
func TestAReaderTellsWhereTheHistoryEndsAndGoesOn(t *testing.T) {
	for _, torn := range []int{0, 9} {
		for _, then := range []string{"", lines(2, 4)} { // while nobody looks
			d := with(lines(0, 2) + line(2)[:torn])
			r := openReader(t, d, 0)
			d.Set(name, lines(0, 2)+then)
			require.Equal(t, line(0), next(t, r))
			require.Equal(t, line(1), next(t, r))
			require.Equal(t, endOfHistory, next(t, r))
			d.Set(name, lines(0, 4)+line(4)[:torn])
			require.Equal(t, line(2), next(t, r))
			require.Equal(t, line(3), next(t, r))
			require.Equal(t, "EOF", next(t, r))
			require.Equal(t, "EOF", next(t, r))
			d.Set(name, lines(0, 5))
			require.Equal(t, line(4), next(t, r))
			require.Equal(t, "EOF", next(t, r))
		}
	}
}

func TestAReaderReadsALongLogInLargePieces(t *testing.T) {
	d := with(lines(0, 20_000))
	r := openReader(t, d, 0)
	text, err := rest(t, r)
	require.Equal(t, logfile.ErrEndOfHistory, err)
	require.True(t, text == lines(0, 20_000))
	require.Less(t, d.Count("read"), 2*(len(text)/(64<<10)+10), "each piece is read twice")
	require.Greater(t, d.Count("read"), 2*len(text)/(64<<10), "and all of it does not get into memory")
}

func TestAReaderBeginsWhereItIsTold(t *testing.T) {
	long := strings.Repeat("{", 10_000)
	for _, torn := range []string{"", "{", long} {
		d := with(lines(0, 4) + torn)
		for i := range 5 {
			r := openReader(t, d, int64(len(lines(0, i))))
			text, err := rest(t, r)
			require.Equal(t, lines(i, 4), text)
			require.Equal(t, logfile.ErrEndOfHistory, err)
		}
		r := openReader(t, d, logfile.End)
		require.EqualValues(t, len(lines(0, 4)), r.Offset())
		require.Equal(t, endOfHistory, next(t, r))
		require.Equal(t, "EOF", next(t, r))
		d.Set(name, lines(0, 5))
		require.Equal(t, line(4), next(t, r))
	}
	r := openReader(t, with(long), logfile.End)
	require.Zero(t, r.Offset())
}

func TestAReaderDoesNotBeginAmidALine(t *testing.T) {
	d := with(lines(0, 2))
	for _, offset := range []int64{1, 9, int64(len(lines(0, 2))) - 1} {
		require.ErrorIs(t, readError(t, openReader(t, d, offset)), logfile.ErrChanged)
	}
	require.ErrorContains(t, readError(t, openReader(t, d, int64(len(lines(0, 2)))+1)), "it shrank")
	require.ErrorContains(t, readError(t, openReader(t, d, 1<<40)), "it shrank")

	path := filepath.Join(t.TempDir(), "eventlog") // the system reads nothing at some offsets
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 2)), 0o600))
	for _, offset := range []int64{int64(len(lines(0, 2))) + 1, math.MaxInt64} {
		r, err := logfile.OpenReader(path, logfile.ReaderOptions{Offset: offset})
		require.NoError(t, err)
		require.ErrorIs(t, readError(t, r), logfile.ErrChanged)
		require.NoError(t, r.Close())
	}
}

// readError returns the error that a Reader ends with, after checking that it
// ends with it.
func readError(t *testing.T, r *logfile.Reader) error {
	offset := r.Offset()
	_, err := r.Next()
	requireError(t, err, "read")
	_, again := r.Next()
	require.Equal(t, err, again)
	require.Equal(t, offset, r.Offset())
	return err
}

// The torn text that was read first and what took its place would make an event
// that no one appended.
func TestHalfALineIsForgottenWhenItsWriterTakesItBack(t *testing.T) {
	d := with(line(0))
	r := openReader(t, d, 0)
	require.Equal(t, line(0), next(t, r))
	require.Equal(t, endOfHistory, next(t, r))
	for _, part := range []string{line(1)[:20], "", line(3)[:30]} {
		d.Set(name, line(0)+part)
		require.Equal(t, "EOF", next(t, r))
	}
	d.Set(name, line(0)+line(3))
	require.Equal(t, line(3), next(t, r))
}

// EL-5: a log that was overwritten or shrank is an error, not a crash.
func TestAReaderNoticesThatTheLogWasChanged(t *testing.T) {
	for what, tt := range map[string]struct {
		change func(d *disk.Disk)
		text   string
	}{
		"cut amid a line":        {func(d *disk.Disk) { d.Set(name, lines(0, 3)[:120]) }, "it shrank"},
		"cut by a line":          {func(d *disk.Disk) { d.Set(name, lines(0, 2)) }, "it shrank"},
		"emptied":                {func(d *disk.Disk) { d.Set(name, "") }, "it shrank"},
		"cut and grown":          {func(d *disk.Disk) { d.Set(name, lines(0, 2)+lines(5, 9)) }, "overwritten"},
		"another log in place":   {func(d *disk.Disk) { d.Set(name, lines(10, 20)) }, "overwritten"},
		"overwritten with zeros": {func(d *disk.Disk) { d.Set(name, strings.Repeat("\x00", len(lines(0, 3)))) }, "overwritten"},
		"replaced by a copy":     {func(d *disk.Disk) { d.Put(name, lines(0, 3)) }, "another file"},
		"replaced by a longer":   {func(d *disk.Disk) { d.Put(name, lines(0, 9)) }, "another file"},
		"removed":                {func(d *disk.Disk) { d.Delete(name) }, "gone"},
	} {
		for _, toldBefore := range []bool{true, false} {
			d := with(lines(0, 3))
			r := openReader(t, d, 0)
			for i := range 3 {
				require.Equal(t, line(i), next(t, r))
			}
			if toldBefore {
				require.Equal(t, endOfHistory, next(t, r))
			}
			tt.change(d)
			err := readError(t, r)
			require.ErrorIs(t, err, logfile.ErrChanged, what)
			require.ErrorContains(t, err, tt.text, what)
			d.Put(name, lines(0, 5))
			require.Equal(t, err, readError(t, r), "it stays so")
			require.NoError(t, r.Close())
		}
	}
}

func TestWhatALogHeldComesOutBeforeItsReplacementIsTold(t *testing.T) {
	d := with(lines(0, 3))
	r := openReader(t, d, 0)
	d.Put(name, lines(7, 9))
	text, err := rest(t, r)
	require.Equal(t, lines(0, 3), text)
	require.ErrorContains(t, err, "another file")

	// What was appended after the last look, and before the change.
	d = with(lines(0, 3))
	r = openReader(t, d, 0)
	for range 4 {
		next(t, r)
	}
	d.Fail("read", disk.Fault{N: len(line(2)), Err: io.EOF, Then: func() {
		d.Set(name, lines(0, 5))
		d.Put(name, lines(7, 9))
	}})
	text, err = rest(t, r)
	require.Equal(t, lines(3, 5), text)
	require.ErrorContains(t, err, "another file")
}

func TestADuplicateOfTheEntryBeforeIsReported(t *testing.T) {
	other := strings.Replace(line(1), `{"n":`, `{"n": `, 1)
	d := with(line(0) + line(0) + line(1) + line(0) + line(0) + line(0) + line(1) + other + line(1))
	r := openReader(t, d, 0)
	require.False(t, r.Duplicate())
	for i, want := range []bool{false, true, false, false, true, true, false, false, false} {
		_, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, want, r.Duplicate(), i)
	}
	require.Equal(t, endOfHistory, next(t, r))
	require.Equal(t, "EOF", next(t, r))
	// Across a look at the file too.
	d.Set(name, d.Read(name)+line(1))
	require.Equal(t, line(1), next(t, r))
	require.True(t, r.Duplicate())

	// What was before the offset is not known.
	r = openReader(t, d, int64(len(line(0))))
	require.Equal(t, line(0), next(t, r))
	require.False(t, r.Duplicate())
}

func TestAnInvalidLineEndsTheReader(t *testing.T) {
	for what, tt := range map[string]struct {
		text string
		is   error
	}{
		"garbage":               {"garbage\n" + line(2), eventlog.ErrSyntax},
		"an empty line":         {"\n", eventlog.ErrSyntax},
		"no event":              {"{}\n" + line(2), eventlog.ErrEntry},
		"a long line":           {strings.Repeat(" ", eventlog.DefaultMaxLine+1) + "\n" + line(2), eventlog.ErrLimit},
		"a long line, not over": {strings.Repeat(" ", eventlog.DefaultMaxLine+1), eventlog.ErrLimit},
	} {
		for _, offset := range []int{0, len(line(0)), len(lines(0, 2))} {
			d := with(lines(0, 2) + tt.text)
			r := openReader(t, d, int64(offset))
			text, err := rest(t, r)
			require.Equal(t, lines(0, 2)[offset:], text)
			require.ErrorIs(t, err, logfile.ErrDamaged, what)
			require.ErrorIs(t, err, tt.is)
			var damage *logfile.DamageError
			require.ErrorAs(t, err, &damage)
			require.EqualValues(t, len(lines(0, 2)), damage.Offset)
			var syntax *eventlog.SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.GreaterOrEqual(t, syntax.Offset, damage.Offset)
			require.LessOrEqual(t, syntax.Offset, damage.Offset+eventlog.DefaultMaxLine)
			_, again := r.Next()
			require.Equal(t, err, again)
			require.EqualValues(t, len(lines(0, 2)), r.Offset())
		}
	}
}

func TestALineMayBeAsLongAsEventlogAllows(t *testing.T) {
	head, tail := `{"timestamp":1.0,"name":"memo","context":{"x":"`, `"}}`
	long := head + strings.Repeat("x", eventlog.DefaultMaxLine-len(head)-len(tail)) + tail + "\n"
	d := with(line(0) + long)
	_, err := logfile.Open(name, logfile.Options{FS: d})
	require.NoError(t, err)
	r := openReader(t, d, 0)
	require.Equal(t, line(0), next(t, r))
	require.Equal(t, long, next(t, r))
	require.Equal(t, endOfHistory, next(t, r))
	d.Set(name, line(0)+long+strings.TrimSpace(long))
	require.Equal(t, "EOF", next(t, r), "its newline may come")
	d.Set(name, line(0)+long+long+line(1))
	require.Equal(t, long, next(t, r))
	require.True(t, r.Duplicate())
	require.Equal(t, line(1), next(t, r))
}

func TestAnErrorOfTheFileSystemIsToldAndReadingGoesOn(t *testing.T) {
	d := with(lines(0, 200))
	for _, f := range []disk.Fault{{Err: errDisk}, {N: 10, Err: errDisk}, {N: 10}, {Lie: -1}, {N: 1 << 20, Lie: 1}} {
		r := openReader(t, d, 0)
		d.Fail("read", f)
		text := next(t, r)
		require.True(t, strings.HasPrefix(text, "logfile: read "), text)
		d.Fail("read", disk.Fault{N: 4 << 10}) // the buffer's first size
		var got strings.Builder
		for range 150 {
			got.WriteString(next(t, r))
		}
		require.Equal(t, lines(0, 150), got.String(), f)
		more, err := rest(t, r)
		require.Equal(t, lines(150, 200), more)
		require.Equal(t, logfile.ErrEndOfHistory, err)
		d.Fail("statname", disk.Fault{Err: errDisk})
		_, err = r.Next()
		require.ErrorIs(t, err, errDisk)
		require.Equal(t, "EOF", next(t, r))
		require.NoError(t, r.Close())
	}
	for _, f := range []disk.Fault{{Err: errDisk}, {N: 3}, {Lie: -1}} {
		d.Fail("read", f)
		_, err := logfile.OpenReader(name, logfile.ReaderOptions{FS: d, Offset: logfile.End})
		requireError(t, err, "read")
	}
	d.Fail("read", disk.Fault{N: 3, Err: io.EOF})
	_, err := logfile.OpenReader(name, logfile.ReaderOptions{FS: d, Offset: logfile.End})
	require.ErrorIs(t, err, logfile.ErrChanged)
	for _, op := range []string{"open", "stat"} {
		d.Fail(op, disk.Fault{Err: errDisk})
		_, err = logfile.OpenReader(name, logfile.ReaderOptions{FS: d})
		require.ErrorIs(t, err, errDisk)
	}
	require.Equal(t, d.Count("open")-1, d.Count("close"))
}

// What is left in the buffer of a read that failed is not read.
func TestAFailureWhileFollowingLosesAndRepeatsNothing(t *testing.T) {
	for _, n := range []int{0, 10, len(line(2)), len(line(2)) + 10, 1 << 10} {
		d := with(lines(0, 3) + line(3)[:9])
		r := openReader(t, d, 0)
		d.Fail("read", disk.Fault{N: 1 << 10, Err: io.EOF}) // as any
		d.Fail("read", disk.Fault{N: 1 << 10})              // the same once more
		d.Fail("read", disk.Fault{N: n, Err: errDisk})
		text, err := rest(t, r)
		require.Equal(t, lines(0, 3), text)
		require.ErrorIs(t, err, errDisk)
		require.Equal(t, endOfHistory, next(t, r))
		for range 2 {
			d.Fail("read", disk.Fault{N: n, Err: errDisk})
			_, err = r.Next()
			require.ErrorIs(t, err, errDisk)
			require.Equal(t, "EOF", next(t, r))
		}
		d.Set(name, lines(0, 5))
		d.Fail("read", disk.Fault{N: n, Err: errDisk})
		_, err = r.Next()
		require.ErrorIs(t, err, errDisk)
		text, err = rest(t, r)
		require.Equal(t, lines(3, 5), text)
		require.Equal(t, io.EOF, err)
	}
}

func TestAClosedReaderSaysSo(t *testing.T) {
	r := openReader(t, with(lines(0, 2)), 0)
	require.Equal(t, line(0), next(t, r))
	require.NoError(t, r.Close())
	for _, r := range []*logfile.Reader{r, new(logfile.Reader)} {
		_, err := r.Next()
		require.ErrorIs(t, err, fs.ErrClosed)
		require.ErrorIs(t, r.Close(), fs.ErrClosed)
	}
	d := with("")
	d.Fail("close", disk.Fault{Err: errDisk})
	require.ErrorIs(t, openReader(t, d, 0).Close(), errDisk)

	_, err := logfile.OpenReader(name, logfile.ReaderOptions{FS: disk.New()})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// The first half of what a read returns may be older than the second: then it holds
// a line that no writer wrote.
func TestAReadAcrossATruncationReturnsOnlyWrittenEntries(t *testing.T) {
	a, b := line(1), line(2)
	require.Equal(t, len(a), len(b))
	d := with(line(0) + a)
	r := openReader(t, d, 0)
	d.Set(name, line(0)+a[:len(a)/2]+b[len(b)/2:]) // what the first read sees
	reads := 0
	d.Before = func(op, _ string) error {
		if reads++; op == "read" && reads > 1 {
			d.Set(name, line(0)+b) // the writer is done
		}
		return nil
	}
	require.Equal(t, line(0), next(t, r))
	require.Equal(t, b, next(t, r))
	require.Equal(t, endOfHistory, next(t, r))
}

// A Reader may be ahead of fsync.
func TestAnEntryThatAFailedSyncTakesBackIsMissedByItsReader(t *testing.T) {
	d := with(line(0))
	r := openReader(t, d, logfile.End)
	require.Equal(t, endOfHistory, next(t, r))
	d.Fail("sync", disk.Fault{}) // of Open
	d.Fail("sync", disk.Fault{Err: errDisk, Then: func() { require.Equal(t, line(1), next(t, r)) }})
	require.ErrorIs(t, openLog(t, d).Append([]byte(line(1))), logfile.ErrFailed)
	require.ErrorIs(t, readError(t, r), logfile.ErrChanged)
}

// What a fake says of files that are the same is not proof.
func TestAReaderNoticesChangesOfRealFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog")
	for what, tt := range map[string]struct {
		change func() error
		text   string
	}{
		"replaced": {func() error {
			return errors.Join(os.WriteFile(path+".new", []byte(lines(0, 9)), 0o600), os.Rename(path+".new", path))
		}, "another file"},
		"removed":     {func() error { return os.Remove(path) }, "gone"},
		"truncated":   {func() error { return os.Truncate(path, 60) }, "shrank"},
		"overwritten": {func() error { return os.WriteFile(path, []byte(lines(5, 9)), 0o600) }, "overwritten"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(lines(0, 2)), 0o600))
		l, err := logfile.Open(path, logfile.Options{})
		require.NoError(t, err)
		r, err := logfile.OpenReader(path, logfile.ReaderOptions{})
		require.NoError(t, err)
		require.NoError(t, l.Append([]byte(line(2))))
		for _, want := range []string{line(0), line(1), endOfHistory, line(2), "EOF"} {
			require.Equal(t, want, next(t, r))
		}
		require.NoError(t, tt.change())
		_, err = r.Next()
		require.ErrorIs(t, err, logfile.ErrChanged, what)
		require.ErrorContains(t, err, tt.text, what)
		require.NoError(t, r.Close())
		require.ErrorIs(t, l.Append([]byte(line(3))), logfile.ErrChanged, "Append: "+what)
		require.NoError(t, l.Close())
	}
}
