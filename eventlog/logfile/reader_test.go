package logfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
)

// openReader opens a Reader of the log on a disk.
func openReader(t require.TestingT, d *disk, offset int64) *logfile.Reader {
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

// EL-5: each event once, in order, and where the history ends.
func TestAReaderTellsWhereTheHistoryEndsAndGoesOn(t *testing.T) {
	t.Log("EL-5")
	d := with(name, lines(0, 2))
	l := openLog(t, d, logfile.SyncGroup)
	r := openReader(t, d, 0)
	require.Zero(t, r.Offset())
	require.Equal(t, line(0), next(t, r))
	require.Equal(t, line(1), next(t, r))
	require.Equal(t, endOfHistory, next(t, r))
	require.Equal(t, "EOF", next(t, r))
	require.Equal(t, "EOF", next(t, r))
	require.NoError(t, l.Append([]byte(lines(2, 4))))
	require.Equal(t, line(2), next(t, r))
	require.Equal(t, line(3), next(t, r))
	require.Equal(t, "EOF", next(t, r))
	require.NoError(t, l.Append([]byte(line(4))))
	require.Equal(t, line(4), next(t, r))
	require.Equal(t, "EOF", next(t, r))
	require.Zero(t, r.Rest())
	require.NoError(t, r.Close())
}

func TestTheHistoryIsWhatWasThereWhenTheReaderWasOpened(t *testing.T) {
	d := with(name, lines(0, 2)+line(2)[:9])
	r := openReader(t, d, 0)
	d.names[name].cache = []byte(lines(0, 5))
	text, err := rest(t, r)
	require.Equal(t, lines(0, 2), text)
	require.Equal(t, logfile.ErrEndOfHistory, err)
	text, err = rest(t, r)
	require.Equal(t, lines(2, 5), text)
	require.Equal(t, io.EOF, err)
}

func TestAHistoryMayEndWithATornLine(t *testing.T) {
	d := with(name, lines(0, 2)+line(2)[:9])
	r := openReader(t, d, 0)
	text, err := rest(t, r)
	require.Equal(t, lines(0, 2), text)
	require.Equal(t, logfile.ErrEndOfHistory, err)
	require.Equal(t, 9, r.Rest())

	r = openReader(t, d, 0)
	require.Equal(t, line(0), next(t, r))
	d.names[name].cache = []byte(lines(0, 2) + line(2)[:20]) // not a part of the history, and no line yet
	r2 := openReader(t, d, 0)
	d.names[name].cache = []byte(lines(0, 2) + line(2)[:30])
	for _, r := range []*logfile.Reader{r, r2} {
		_, err = rest(t, r)
		require.Equal(t, logfile.ErrEndOfHistory, err)
	}
	require.Equal(t, 30, r2.Rest())
	d.names[name].cache = []byte(lines(0, 3))
	for _, r := range []*logfile.Reader{r, r2} {
		require.Equal(t, line(2), next(t, r))
	}
}

// More than a buffer of it, so that looking again finds no more.
func TestALimitHoldsInALongLog(t *testing.T) {
	for _, n := range []int{0, 1, 2000} {
		limit := int64(len(lines(0, n)))
		r, err := logfile.OpenReader(name, logfile.ReaderOptions{FS: with(name, lines(0, 5000)), Limit: func() int64 { return limit }})
		require.NoError(t, err)
		text, err := rest(t, r)
		require.Equal(t, logfile.ErrEndOfHistory, err)
		require.Equal(t, lines(0, n), text)
		require.Equal(t, "EOF", next(t, r))
		limit = 1 << 40
		text, err = rest(t, r)
		require.Equal(t, io.EOF, err)
		require.Equal(t, lines(n, 5000), text)
	}
}

func TestAReaderReadsALongLogInLargePieces(t *testing.T) {
	d := with(name, lines(0, 20_000))
	r := openReader(t, d, 0)
	text, err := rest(t, r)
	require.Equal(t, logfile.ErrEndOfHistory, err)
	require.True(t, text == lines(0, 20_000))
	require.Less(t, d.count("read"), 2*(len(text)/(64<<10)+10), "each piece is read twice")
}

func TestAnEmptyLogHasAnEmptyHistory(t *testing.T) {
	for _, offset := range []int64{0, logfile.End, -7} {
		d := with(name, "")
		r := openReader(t, d, offset)
		require.Equal(t, endOfHistory, next(t, r))
		require.Equal(t, "EOF", next(t, r))
		d.names[name].cache = []byte(line(0))
		require.Equal(t, line(0), next(t, r))
	}
}

func TestAReaderBeginsWhereItIsTold(t *testing.T) {
	long := strings.Repeat("{", 10_000)
	for _, torn := range []string{"", "{", long} {
		d := with(name, lines(0, 4)+torn)
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
		require.Equal(t, len(torn), r.Rest())
		d.names[name].cache = []byte(lines(0, 5))
		require.Equal(t, line(4), next(t, r))
		require.Zero(t, r.Rest())
	}
	r := openReader(t, with(name, long), logfile.End)
	require.Zero(t, r.Offset())
}

func TestAReaderDoesNotBeginAmidALine(t *testing.T) {
	d := with(name, lines(0, 2))
	for _, offset := range []int64{1, 9, int64(len(lines(0, 2))) - 1} {
		require.ErrorIs(t, readError(t, openReader(t, d, offset)), logfile.ErrChanged)
	}
	require.ErrorContains(t, readError(t, openReader(t, d, int64(len(lines(0, 2)))+1)), "it shrank")
	require.ErrorContains(t, readError(t, openReader(t, d, 1<<40)), "it shrank")
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

func TestAnEntryComesOutWhenItsLineIsComplete(t *testing.T) {
	d := with(name, "")
	r := openReader(t, d, 0)
	require.Equal(t, endOfHistory, next(t, r))
	for i, c := range []byte(lines(0, 3)) {
		if n := i % len(line(0)); n > 0 {
			require.Equal(t, "EOF", next(t, r))
			require.Equal(t, n, r.Rest())
		}
		d.names[name].cache = append(d.names[name].cache, c)
		if c == '\n' {
			require.Equal(t, line(i/len(line(0))), next(t, r))
		}
	}
}

// The torn text that was read first and what took its place would make an event
// that no one appended.
func TestHalfALineIsForgottenWhenItsWriterTakesItBack(t *testing.T) {
	d := with(name, line(0))
	l := openLog(t, d, logfile.SyncGroup)
	r := openReader(t, d, 0)
	require.Equal(t, line(0), next(t, r))
	require.Equal(t, endOfHistory, next(t, r))
	d.fail("write", fault{n: 20, err: errDisk, then: func() {
		require.Equal(t, "EOF", next(t, r))
	}})
	d.fail("stat", fault{err: errDisk, then: func() {
		require.Equal(t, "EOF", next(t, r))
		require.Equal(t, 20, r.Rest())
	}})
	require.ErrorIs(t, l.Append([]byte(line(1))), logfile.ErrFailed)
	l = openLog(t, d, logfile.SyncGroup)
	require.NoError(t, l.Append([]byte(line(3))))
	require.Equal(t, line(3), next(t, r))
}

// EL-6: not visible outside before it is durable.
func TestALimitHidesWhatIsNotDurable(t *testing.T) {
	t.Log("EL-6")
	d := with(name, lines(0, 2))
	l := openLog(t, d, logfile.SyncGroup)
	require.NoError(t, l.Append([]byte(line(2))))
	for _, offset := range []int64{0, logfile.End} {
		r, err := logfile.OpenReader(name, logfile.ReaderOptions{FS: d, Offset: offset, Limit: l.Durable})
		require.NoError(t, err)
		if offset == 0 {
			require.Equal(t, line(0), next(t, r))
			require.Equal(t, line(1), next(t, r))
		}
		require.Equal(t, endOfHistory, next(t, r))
		require.Equal(t, "EOF", next(t, r))
		d.fail("sync", fault{err: errDisk})
		if offset == logfile.End {
			require.Error(t, l.Sync())
			require.Equal(t, "EOF", next(t, r))
			continue
		}
		require.NoError(t, l.Append([]byte(line(3))))
		d.faults = map[string][]fault{}
		require.NoError(t, l.Sync())
		require.Equal(t, line(2), next(t, r))
		require.Equal(t, line(3), next(t, r))
		require.Equal(t, "EOF", next(t, r))
		require.NoError(t, l.Append([]byte(line(4))))
		require.Equal(t, "EOF", next(t, r))
	}
}

func TestALimitOfNothingHidesAll(t *testing.T) {
	limit := int64(-5)
	r, err := logfile.OpenReader(name, logfile.ReaderOptions{FS: with(name, lines(0, 2)), Limit: func() int64 { return limit }})
	require.NoError(t, err)
	require.Equal(t, endOfHistory, next(t, r))
	require.Equal(t, "EOF", next(t, r))
	limit = 60 // within the second line
	require.Equal(t, line(0), next(t, r))
	require.Equal(t, "EOF", next(t, r))
	require.Equal(t, 10, r.Rest())
	limit = 1 << 40
	require.Equal(t, line(1), next(t, r))
	limit = 0
	require.Equal(t, "EOF", next(t, r))
}

// EL-5: a log that was overwritten or shrank is an error, not a crash.
func TestAReaderNoticesThatTheLogWasChanged(t *testing.T) {
	t.Log("EL-5")
	for what, tt := range map[string]struct {
		change func(d *disk)
		text   string
	}{
		"cut amid a line":        {func(d *disk) { d.names[name].cache = d.names[name].cache[:120] }, "it shrank"},
		"cut by a line":          {func(d *disk) { d.names[name].cache = d.names[name].cache[:100] }, "it shrank"},
		"emptied":                {func(d *disk) { d.names[name].cache = nil }, "it shrank"},
		"cut and grown":          {func(d *disk) { d.names[name].cache = []byte(lines(0, 2) + lines(5, 9)) }, "overwritten"},
		"another log in place":   {func(d *disk) { d.names[name].cache = []byte(lines(10, 20)) }, "overwritten"},
		"overwritten with zeros": {func(d *disk) { clear(d.names[name].cache) }, "overwritten"},
		"replaced by a copy":     {func(d *disk) { d.put(name, lines(0, 3)) }, "another file"},
		"replaced by a longer":   {func(d *disk) { d.put(name, lines(0, 9)) }, "another file"},
		"removed":                {func(d *disk) { delete(d.names, name) }, "gone"},
	} {
		t.Run(what, func(t *testing.T) {
			for _, toldBefore := range []bool{true, false} {
				d := with(name, lines(0, 3))
				r := openReader(t, d, 0)
				for i := range 3 {
					require.Equal(t, line(i), next(t, r))
				}
				if toldBefore {
					require.Equal(t, endOfHistory, next(t, r))
				}
				was := d.names[name]
				tt.change(d)
				err := readError(t, r)
				require.ErrorIs(t, err, logfile.ErrChanged)
				require.ErrorContains(t, err, tt.text)
				// It stays so, even if the log comes back.
				d.names[name] = was
				was.cache = []byte(lines(0, 3))
				require.Equal(t, err, readError(t, r))
				require.NoError(t, r.Close())
			}
		})
	}
}

func TestWhatALogHeldComesOutBeforeItsReplacementIsTold(t *testing.T) {
	d := with(name, lines(0, 3))
	r := openReader(t, d, 0)
	d.put(name, lines(7, 9))
	text, err := rest(t, r)
	require.Equal(t, lines(0, 3), text)
	require.ErrorContains(t, err, "another file")

	// What was appended after the last look, and before the change.
	d = with(name, lines(0, 3))
	r = openReader(t, d, 0)
	old := d.names[name]
	for range 4 {
		next(t, r)
	}
	d.fail("read", fault{n: len(line(2)), err: io.EOF, then: func() {
		old.cache = append(old.cache, lines(3, 5)...)
		d.put(name, lines(7, 9))
	}})
	text, err = rest(t, r)
	require.Equal(t, lines(3, 5), text)
	require.ErrorContains(t, err, "another file")
}

func TestADuplicateOfTheEntryBeforeIsReported(t *testing.T) {
	other := strings.Replace(line(1), `{"n":`, `{"n": `, 1)
	d := with(name, line(0)+line(0)+line(1)+line(0)+line(0)+line(0)+line(1)+other+line(1))
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
	d.names[name].cache = append(d.names[name].cache, line(1)...)
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
		"garbage":               {"garbage\n", eventlog.ErrSyntax},
		"no event":              {"{}\n", eventlog.ErrEntry},
		"a long line":           {strings.Repeat(" ", eventlog.DefaultMaxLine+1) + "\n", eventlog.ErrLimit},
		"a long line, not over": {strings.Repeat(" ", eventlog.DefaultMaxLine+1), eventlog.ErrLimit},
	} {
		for _, offset := range []int64{0, int64(len(line(0)))} {
			d := with(name, lines(0, 2)+tt.text+line(2))
			r := openReader(t, d, offset)
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
	d := with(name, line(0)+long+long+line(1))
	_, err := logfile.Open(name, logfile.Options{FS: d})
	require.NoError(t, err)
	r := openReader(t, d, 0)
	require.Equal(t, line(0), next(t, r))
	require.Equal(t, long, next(t, r))
	require.Equal(t, long, next(t, r))
	require.True(t, r.Duplicate())
	require.Equal(t, line(1), next(t, r))
	require.Equal(t, endOfHistory, next(t, r))
}

func TestAnErrorOfTheFileSystemIsToldAndReadingGoesOn(t *testing.T) {
	d := with(name, lines(0, 200))
	for _, f := range []fault{{err: errDisk}, {n: 10, err: errDisk}, {n: 10}, {lie: -1}, {n: 1 << 20, lie: 1}} {
		r := openReader(t, d, 0)
		d.fail("read", f)
		text := next(t, r)
		require.True(t, strings.HasPrefix(text, "logfile: read "), text)
		d.fail("read", fault{n: 4 << 10}) // the buffer's first size
		var got strings.Builder
		for range 150 {
			got.WriteString(next(t, r))
		}
		require.Equal(t, lines(0, 150), got.String(), f)
		more, err := rest(t, r)
		require.Equal(t, lines(150, 200), more)
		require.Equal(t, logfile.ErrEndOfHistory, err)
		d.fail("statname", fault{err: errDisk})
		_, err = r.Next()
		require.ErrorIs(t, err, errDisk)
		require.Equal(t, "EOF", next(t, r))
		require.NoError(t, r.Close())
	}
	for _, f := range []fault{{err: errDisk}, {n: 3}, {lie: -1}} {
		d.fail("read", f)
		_, err := logfile.OpenReader(name, logfile.ReaderOptions{FS: d, Offset: logfile.End})
		requireError(t, err, "read")
	}
	d.fail("read", fault{n: 3, err: io.EOF})
	_, err := logfile.OpenReader(name, logfile.ReaderOptions{FS: d, Offset: logfile.End})
	require.ErrorIs(t, err, logfile.ErrChanged)
	for _, op := range []string{"open", "stat"} {
		d.fail(op, fault{err: errDisk})
		_, err = logfile.OpenReader(name, logfile.ReaderOptions{FS: d})
		require.ErrorIs(t, err, errDisk)
	}
	require.Equal(t, d.count("open")-1, d.count("close"))
}

// What is left in the buffer of a read that failed is not read.
func TestAFailureWhileFollowingLosesAndRepeatsNothing(t *testing.T) {
	for _, n := range []int{0, 10, len(line(2)), len(line(2)) + 10, 1 << 10} {
		d := with(name, lines(0, 3)+line(3)[:9])
		r := openReader(t, d, 0)
		d.fail("read", fault{n: 1 << 10, err: io.EOF}) // as any
		d.fail("read", fault{n: 1 << 10})              // the same once more
		d.fail("read", fault{n: n, err: errDisk})
		text, err := rest(t, r)
		require.Equal(t, lines(0, 3), text)
		require.ErrorIs(t, err, errDisk)
		require.Equal(t, endOfHistory, next(t, r))
		for range 2 {
			d.fail("read", fault{n: n, err: errDisk})
			_, err = r.Next()
			require.ErrorIs(t, err, errDisk)
			require.Equal(t, "EOF", next(t, r))
			require.Equal(t, 9, r.Rest())
		}
		d.names[name].cache = []byte(lines(0, 5))
		d.fail("read", fault{n: n, err: errDisk})
		_, err = r.Next()
		require.ErrorIs(t, err, errDisk)
		text, err = rest(t, r)
		require.Equal(t, lines(3, 5), text)
		require.Equal(t, io.EOF, err)
	}
}

func TestAClosedReaderSaysSo(t *testing.T) {
	r := openReader(t, with(name, lines(0, 2)), 0)
	require.Equal(t, line(0), next(t, r))
	require.NoError(t, r.Close())
	for _, r := range []*logfile.Reader{r, new(logfile.Reader)} {
		_, err := r.Next()
		require.ErrorIs(t, err, fs.ErrClosed)
		require.ErrorIs(t, r.Close(), fs.ErrClosed)
	}
	d := with(name, "")
	d.fail("close", fault{err: errDisk})
	require.ErrorIs(t, openReader(t, d, 0).Close(), errDisk)

	_, err := logfile.OpenReader(name, logfile.ReaderOptions{FS: newDisk()})
	require.ErrorIs(t, err, fs.ErrNotExist)
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
		l, err := logfile.Open(path, logfile.Options{Policy: logfile.SyncGroup})
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
		require.ErrorIs(t, l.Sync(), logfile.ErrChanged, fmt.Sprint("Sync: ", what))
		require.NoError(t, l.Close())
	}
}
