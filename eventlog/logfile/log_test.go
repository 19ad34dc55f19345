package logfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/disk"
)

// line returns the i-th line of the logs in these tests. All are different.
func line(i int) string {
	b, err := eventlog.AppendEntry(nil, eventlog.Entry{
		Timestamp: eventlog.Timestamp(i) + 1.5,
		Name:      "memo",
		Context:   fmt.Appendf(nil, `{"n":%d}`, i),
	})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// lines returns the lines first to last-1.
func lines(first, last int) string {
	var b strings.Builder
	for i := first; i < last; i++ {
		b.WriteString(line(i))
	}
	return b.String()
}

// name is that of the log on a disk.
const name = "job.log"

// with returns a disk with a log.
func with(content string) *disk.Disk {
	d := disk.New()
	d.Put(name, content)
	return d
}

// openLog opens the log on a disk, after the process that had it open ended.
func openLog(t require.TestingT, d *disk.Disk) *logfile.Log {
	d.Kill()
	l, err := logfile.Open(name, logfile.Options{FS: d})
	require.NoError(t, err)
	return l
}

// requireError checks what every error of this package is.
func requireError(t require.TestingT, err error, op string) *logfile.Error {
	var e *logfile.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, op, e.Op(), "%v", err)
	require.True(t, strings.HasPrefix(err.Error(), "logfile: "+op+" "), "%v", err)
	require.Equal(t, 1, strings.Count(err.Error(), e.Name()), "%v", err)
	require.NotContains(t, err.Error(), ": eventlog: ")
	return e
}

var errDisk = errors.New("disk on fire")

func TestALogIsCreatedOnceAndOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "eventlog")
	_, err := logfile.Open(path, logfile.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	requireError(t, err, "open")

	l, err := logfile.Create(path, logfile.Options{})
	require.NoError(t, err)
	require.Zero(t, l.Size())
	require.NoError(t, l.Append([]byte(lines(0, 2))))
	require.NoError(t, l.Close())

	_, err = logfile.Create(path, logfile.Options{})
	require.ErrorIs(t, err, fs.ErrExist)
	requireError(t, err, "create")

	l, err = logfile.Open(path, logfile.Options{})
	require.NoError(t, err)
	require.EqualValues(t, len(lines(0, 2)), l.Size())
	require.NoError(t, l.Append([]byte(line(2))))
	require.NoError(t, l.Close())
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, lines(0, 3), string(got))
}

func TestWhatIsOpenIsDurable(t *testing.T) {
	d := disk.New()
	_, err := logfile.Create(name, logfile.Options{FS: d})
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), d.Mode(name))
	require.Equal(t, []int{0, 1}, []int{d.Count("sync"), d.Count("syncdir")}, "it has nothing but its name")
	d.Crash()
	require.Empty(t, d.Read(name))

	// Its first process was killed before it synced anything.
	d = disk.New()
	_, err = d.OpenFile(name, os.O_CREATE, 0o600)
	require.NoError(t, err)
	d.Write(name, 0, lines(0, 3))
	require.EqualValues(t, len(lines(0, 3)), openLog(t, d).Size())
	d.Crash()
	require.Equal(t, lines(0, 3), d.Read(name))
}

func TestWhatFailsInOpenChangesNothing(t *testing.T) {
	for _, op := range []string{"open", "stat", "read", "sync", "syncdir"} {
		d := with(lines(0, 2))
		d.Fail(op, disk.Fault{Err: errDisk})
		_, err := logfile.Open(name, logfile.Options{FS: d})
		require.ErrorIs(t, err, errDisk, op)
		requireError(t, err, "open")
		require.Equal(t, lines(0, 2), d.Read(name))
		require.Equal(t, d.Count("open")-d.Count("close"), map[bool]int{true: 1}[op == "open"], op)

		d = disk.New()
		if op == "read" || op == "sync" {
			continue // there is nothing to read or sync
		}
		d.Fail(op, disk.Fault{Err: errDisk})
		_, err = logfile.Create(name, logfile.Options{FS: d})
		require.ErrorIs(t, err, errDisk, op)
		requireError(t, err, "create")
		if op != "open" {
			require.Zero(t, openLog(t, d).Size(), "it is an empty log")
		}
	}
}

// Another process opens the log before the one that made it has locked it.
func TestCreateLeavesAloneWhatAnotherAppended(t *testing.T) {
	for _, open := range []bool{true, false} { // when Create has the lock, or not
		d := disk.New()
		_, err := logfile.Create(name, logfile.Options{FS: slowLock{d, func() {
			l, err := logfile.Open(name, logfile.Options{FS: d})
			require.NoError(t, err)
			require.NoError(t, l.Append([]byte(lines(0, 3))))
			if !open {
				require.NoError(t, l.Close())
			}
		}}})
		requireError(t, err, "create")
		require.ErrorIs(t, err, map[bool]error{true: logfile.ErrLocked, false: fs.ErrExist}[open])
		require.Equal(t, lines(0, 3), d.Read(name))
	}
}

func TestOpenRefusesALogThatIsDamaged(t *testing.T) {
	long := strings.Repeat("x", eventlog.DefaultMaxLine+1)
	for what, tt := range map[string]struct {
		content string
		good    int
		line    int
		entries int
		is      error
	}{
		"a torn last line":          {lines(0, 2) + line(2)[:9], 2, 3, 0, eventlog.ErrTorn},
		"nothing but a torn line":   {line(0)[:9], 0, 1, 0, eventlog.ErrTorn},
		"zeros at the end":          {lines(0, 2) + strings.Repeat("\x00", 99), 2, 3, 0, eventlog.ErrTorn},
		"a last line of garbage":    {lines(0, 2) + "garbage\n", 2, 3, 0, eventlog.ErrSyntax},
		"no event":                  {lines(0, 2) + "{}\n{", 2, 3, 0, eventlog.ErrEntry},
		"garbage amid":              {lines(0, 2) + "garbage\n" + lines(2, 5), 2, 3, 3, eventlog.ErrSyntax},
		"garbage at several places": {"\n" + line(1) + "\x00\n" + lines(2, 4) + line(3)[:4], 0, 1, 3, eventlog.ErrSyntax},
		"the shortest entry":        {"\n" + `{"name":"x","timestamp":1}` + "\n", 0, 1, 1, eventlog.ErrSyntax},
		"a line that is too long":   {line(0) + long + "\n" + line(2), 1, 2, 1, eventlog.ErrLimit},
		"a long line at the end":    {line(0) + long, 1, 2, 0, eventlog.ErrLimit},
		"the end of a long line":    {"\n" + long + "x" + line(4), 0, 1, 0, eventlog.ErrSyntax},
		"a long line, then another": {line(0) + "{\n" + long + line(4) + line(5), 1, 2, 1, eventlog.ErrSyntax},
	} {
		t.Run(what, func(t *testing.T) {
			d := with(tt.content)
			_, err := logfile.Open(name, logfile.Options{FS: d})
			require.ErrorIs(t, err, logfile.ErrDamaged)
			require.ErrorIs(t, err, tt.is)
			var damage *logfile.DamageError
			require.ErrorAs(t, err, &damage)
			require.Equal(t, int64(len(lines(0, tt.good))), damage.Offset)
			require.EqualValues(t, len(tt.content), damage.Size)
			require.Equal(t, tt.entries, damage.Entries)
			require.Equal(t, name, damage.Name)
			require.True(t, strings.HasPrefix(err.Error(), fmt.Sprintf("logfile: %s: line %d: offset ", name, tt.line)), "%v", err)
			require.Equal(t, tt.entries > 0, strings.HasSuffix(err.Error(), fmt.Sprintf("; entries that follow: %d", tt.entries)), "%v", err)
			require.Less(t, len(err.Error()), 300)
			require.Equal(t, tt.content, d.Read(name))
			require.Zero(t, d.Count("sync"))
		})
	}
}

func TestALogThatShrinksWhileItIsOpenedIsNotOpened(t *testing.T) {
	d := with(lines(0, 2))
	d.Fail("read", disk.Fault{N: len(line(0)), Err: io.EOF})
	_, err := logfile.Open(name, logfile.Options{FS: d})
	require.ErrorIs(t, err, logfile.ErrChanged)
	d.Fail("read", disk.Fault{N: len(line(0)), Err: io.EOF})
	_, err = logfile.Repair(name, logfile.RepairOptions{FS: d, Cut: true})
	require.ErrorIs(t, err, logfile.ErrChanged)
	require.Equal(t, lines(0, 2), d.Read(name))
}

func TestABatchIsWrittenWithOneCallAndDurable(t *testing.T) {
	d := with(line(0))
	l := openLog(t, d)
	syncs := d.Count("sync")
	require.NoError(t, l.Append([]byte(lines(1, 100))))
	require.NoError(t, l.Append(nil))
	require.NoError(t, l.Append([]byte{}))
	require.Equal(t, 1, d.Count("write"))
	require.Equal(t, syncs+1, d.Count("sync"))
	require.EqualValues(t, len(lines(0, 100)), l.Size())
	d.Crash()
	require.Equal(t, lines(0, 100), d.Read(name))
}

func TestAClosedLogDoesNothing(t *testing.T) {
	d := with("")
	l := openLog(t, d)
	require.NoError(t, l.Close())
	for _, err := range []error{l.Close(), l.Append(nil), l.Append([]byte(line(2))), new(logfile.Log).Close()} {
		require.ErrorIs(t, err, fs.ErrClosed)
		require.NotErrorIs(t, err, logfile.ErrFailed)
	}
	l = openLog(t, d)
	d.Fail("close", disk.Fault{Err: errDisk})
	require.ErrorIs(t, requireError(t, l.Close(), "close"), errDisk)
	require.Equal(t, d.Count("open"), d.Count("close"))
}

func TestAnInvalidBatchIsRefusedWhole(t *testing.T) {
	d := with(line(0))
	l, err := logfile.Open(name, logfile.Options{FS: d, MaxBatch: 200})
	require.NoError(t, err)
	for what, tt := range map[string]struct {
		batch string
		is    error
		text  string
	}{
		"a torn line":      {line(1) + line(2)[:7], eventlog.ErrTorn, "line 2"},
		"no newline":       {strings.TrimSuffix(line(1), "\n"), eventlog.ErrTorn, "line 1"},
		"no event":         {line(1) + "{}\n", eventlog.ErrEntry, "line 2"},
		"an empty line":    {"\n", eventlog.ErrSyntax, "line 1"},
		"too many bytes":   {lines(100, 104), logfile.ErrBatch, "the limit is 200"},
		"a byte too many":  {strings.Repeat("x", 201), logfile.ErrBatch, "201 bytes"},
		"as many as it is": {strings.Repeat("x", 200), eventlog.ErrTorn, "line 1"},
	} {
		err := l.Append([]byte(tt.batch))
		require.ErrorIs(t, err, logfile.ErrBatch, what)
		require.ErrorIs(t, err, tt.is, what)
		require.NotErrorIs(t, err, logfile.ErrFailed)
		require.ErrorContains(t, requireError(t, err, "append"), tt.text, what)
	}
	require.Zero(t, d.Count("write"))
	require.NoError(t, l.Append([]byte(line(1))))
	require.Equal(t, lines(0, 2), d.Read(name))

	err = openLog(t, d).Append(bytes.Repeat([]byte("x"), logfile.DefaultMaxBatch+1))
	require.ErrorIs(t, err, logfile.ErrBatch)
	require.ErrorContains(t, err, fmt.Sprint("the limit is ", logfile.DefaultMaxBatch))
}

// EL-4: earlier bytes stay, the error comes once, and the log goes on.
func TestAFailedWriteIsTakenBackAndTheLogGoesOn(t *testing.T) {
	batch := lines(2, 5)
	for what, tt := range map[string]struct {
		f  disk.Fault
		is error
	}{
		"nothing written":          {disk.Fault{Err: errDisk}, errDisk},
		"a byte written":           {disk.Fault{N: 1, Err: errDisk}, errDisk},
		"lines written":            {disk.Fault{N: len(lines(2, 4)), Err: errDisk}, errDisk},
		"all written and an error": {disk.Fault{N: len(batch), Err: errDisk}, errDisk},
		"a full disk":              {disk.Fault{N: 50, Err: syscall.ENOSPC}, syscall.ENOSPC},
		"short without an error":   {disk.Fault{N: 7}, io.ErrShortWrite},
		"more counted than there":  {disk.Fault{N: len(batch), Lie: 1}, logfile.ErrCount},
		"less counted than there":  {disk.Fault{N: len(batch), Lie: -1}, io.ErrShortWrite},
		"a negative count":         {disk.Fault{N: 3, Lie: -9}, logfile.ErrCount},
	} {
		d := with(lines(0, 2))
		l := openLog(t, d)
		for range 2 {
			d.Fail("write", tt.f)
			err := l.Append([]byte(batch))
			requireError(t, err, "append")
			require.ErrorIs(t, err, tt.is, what)
			require.NotErrorIs(t, err, logfile.ErrFailed)
			require.Equal(t, lines(0, 2), d.Read(name), what)
			require.EqualValues(t, len(lines(0, 2)), l.Size())
		}
		require.NoError(t, l.Append([]byte(batch)))
		require.Equal(t, lines(0, 5), d.Read(name), what)
	}
}

// Otherwise the next batch would go where the disk has what is left of this one,
// and a crash could leave a mixture.
func TestWhatIsTakenBackIsOffTheDiskBeforeTheNextBatch(t *testing.T) {
	d := with(line(0))
	l := openLog(t, d)
	for n, syncs := range []int{0, 1} { // there is nothing to sync where nothing was written
		before := d.Count("sync")
		d.Fail("write", disk.Fault{N: n, Err: errDisk})
		require.Error(t, l.Append([]byte(line(1))))
		require.Equal(t, before+syncs, d.Count("sync"))
	}
}

// requireFailed checks that a log refuses all, and says the cause no more.
func requireFailed(t *testing.T, l *logfile.Log, d *disk.Disk, stands string) {
	before := d.Read(name)
	calls := len(d.Calls)
	for range 2 {
		err := l.Append([]byte(line(9)))
		require.ErrorIs(t, err, logfile.ErrFailed)
		require.NotErrorIs(t, err, errDisk)
		require.NotErrorIs(t, err, logfile.ErrChanged)
		require.EqualValues(t, len(stands), requireError(t, err, "append").Offset())
	}
	require.EqualValues(t, len(stands), l.Size())
	require.Len(t, d.Calls, calls)
	require.NoError(t, l.Close())
	require.Equal(t, before, d.Read(name))
}

func TestAWriteThatCannotBeTakenBackEndsTheLog(t *testing.T) {
	for _, op := range []string{"stat", "truncate", "sync"} {
		d := with(line(0))
		l := openLog(t, d)
		d.Fail("write", disk.Fault{N: 20, Err: syscall.EIO})
		d.Fail(op, disk.Fault{Err: errDisk})
		err := l.Append([]byte(line(1)))
		require.ErrorIs(t, err, logfile.ErrFailed)
		require.ErrorIs(t, err, errDisk)
		require.ErrorIs(t, err, syscall.EIO)
		requireError(t, err, "append")
		// The second attempt to cut had no fault.
		require.Equal(t, line(0), d.Read(name))
		requireFailed(t, l, d, line(0))
	}

	d := with(line(0))
	l := openLog(t, d)
	d.Fail("write", disk.Fault{N: 20, Err: syscall.EIO})
	d.Fail("truncate", disk.Fault{Err: errDisk})
	d.Fail("truncate", disk.Fault{Err: errDisk})
	require.ErrorContains(t, l.Append([]byte(line(1))), "cutting off what is not durable")
	requireFailed(t, l, d, line(0))
	_, err := logfile.Open(name, logfile.Options{FS: d})
	require.ErrorIs(t, err, eventlog.ErrTorn)
}

// After a failed fsync the system shows bytes that are not on the disk and calls
// the next fsync a success.
func TestAFailedSyncCutsOffTheBatchAndEndsTheLog(t *testing.T) {
	d := with(lines(0, 2))
	l := openLog(t, d)
	d.Fail("sync", disk.Fault{Err: errDisk})
	err := l.Append([]byte(lines(2, 4)))
	require.ErrorIs(t, err, logfile.ErrFailed)
	require.ErrorIs(t, err, errDisk)
	requireError(t, err, "append")
	requireFailed(t, l, d, lines(0, 2))

	require.NoError(t, openLog(t, d).Append([]byte(lines(7, 9))))
	d.Crash()
	require.Equal(t, lines(0, 2)+lines(7, 9), d.Read(name))
}

// Else the next batch would go where the disk may have what was cut off.
func TestWhatAFailedSyncCutOffIsOffTheDiskWhenTheLogIsOpenAgain(t *testing.T) {
	for _, content := range []string{"", line(0)} {
		d := with(content)
		d.Coin = func() bool { return true }
		l := openLog(t, d)
		d.Fail("sync", disk.Fault{Err: errDisk})
		require.ErrorIs(t, l.Append([]byte(line(1))), logfile.ErrFailed)
		require.Equal(t, content+line(1), d.Stable(name))
		openLog(t, d)
		require.Equal(t, content, d.Stable(name))
	}
}

func TestAppendNoticesThatOthersChangedTheLog(t *testing.T) {
	for what, tt := range map[string]struct {
		change func(d *disk.Disk) // of a log of two lines
		sized  bool               // its size tells
	}{
		"shrank":   {func(d *disk.Disk) { d.Set(name, line(0)[:5]) }, true},
		"emptied":  {func(d *disk.Disk) { d.Set(name, "") }, true},
		"grew":     {func(d *disk.Disk) { d.Set(name, d.Read(name)+lines(7, 9)) }, true},
		"replaced": {func(d *disk.Disk) { d.Put(name, lines(0, 2)) }, false},
		"removed":  {func(d *disk.Disk) { d.Delete(name) }, false},
	} {
		d := with(line(0))
		l := openLog(t, d)
		d.Fail("sync", disk.Fault{Then: func() { tt.change(d) }})
		err := l.Append([]byte(line(1)))
		require.ErrorIs(t, err, logfile.ErrChanged, what)
		require.ErrorIs(t, err, logfile.ErrFailed)
		requireError(t, err, "append")
		require.Zero(t, d.Count("truncate"), "nothing is cut off")
		requireFailed(t, l, d, line(0))

		// A cut must neither make a file grow, with zeros, nor take what others wrote.
		for _, op := range []string{"write", "sync"} {
			if !tt.sized {
				continue
			}
			d := with(line(0))
			l := openLog(t, d)
			d.Fail(op, disk.Fault{N: 3, Err: errDisk, Then: func() { tt.change(d) }})
			err := l.Append([]byte(line(1)))
			require.ErrorIs(t, err, logfile.ErrFailed, what)
			require.ErrorIs(t, err, logfile.ErrChanged)
			require.ErrorIs(t, err, errDisk)
			require.Zero(t, d.Count("truncate"))
		}
	}

	d := with(line(0))
	l := openLog(t, d)
	d.Fail("statname", disk.Fault{Err: errDisk})
	err := l.Append([]byte(line(1)))
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, err, logfile.ErrFailed)
	requireFailed(t, l, d, line(0))
}

func TestOnlyAFileOfTheSystemHasTheSystemsLock(t *testing.T) {
	f, err := with("").OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	require.ErrorContains(t, logfile.Lock(f), "not a file of the operating system")
}

func TestASecondOpenerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog")
	l, err := logfile.Create(path, logfile.Options{})
	require.NoError(t, err)
	for range 2 {
		_, err = logfile.Open(path, logfile.Options{})
		require.ErrorIs(t, err, logfile.ErrLocked)
		if runtime.GOOS == "linux" {
			require.ErrorContains(t, err, "by process "+strconv.Itoa(os.Getpid()))
		}
		_, err = logfile.Repair(path, logfile.RepairOptions{})
		require.ErrorIs(t, err, logfile.ErrLocked)
	}
	r, err := logfile.OpenReader(path, logfile.ReaderOptions{})
	require.NoError(t, err, "readers are welcome")
	require.NoError(t, r.Close())
	require.NoError(t, l.Append([]byte(line(0))))
	require.NoError(t, l.Close())
	l, err = logfile.Open(path, logfile.Options{})
	require.NoError(t, err, "it is free again")
	require.NoError(t, l.Close())
	done, err := logfile.Repair(path, logfile.RepairOptions{})
	require.NoError(t, err)
	require.Zero(t, done.Size)
}

// slowLock is a disk on which others act before a log is locked.
type slowLock struct {
	*disk.Disk
	before func()
}

func (s slowLock) Lock(f logfile.File) error {
	s.before()
	return s.Disk.Lock(f)
}

// Another writer ends its append, and its process, between the opening and the lock.
func TestTheSizeOfALogIsThatUnderItsLock(t *testing.T) {
	d := with(lines(0, 2))
	slow := slowLock{d, func() { d.Set(name, lines(0, 3)) }}
	l, err := logfile.Open(name, logfile.Options{FS: slow})
	require.NoError(t, err)
	require.EqualValues(t, len(lines(0, 3)), l.Size())
	d.Fail("write", disk.Fault{N: 5, Err: syscall.ENOSPC})
	require.ErrorIs(t, l.Append([]byte(lines(3, 6))), syscall.ENOSPC)
	require.Equal(t, lines(0, 3), d.Read(name), "what is durable is not cut off")

	d = with(lines(0, 2) + line(2)[:20])
	slow = slowLock{d, func() { d.Set(name, lines(0, 5)) }}
	done, err := logfile.Repair(name, logfile.RepairOptions{FS: slow})
	require.NoError(t, err)
	require.Equal(t, logfile.Repaired{Offset: int64(len(lines(0, 5)))}, done)
	require.Equal(t, lines(0, 5), d.Read(name))
}
