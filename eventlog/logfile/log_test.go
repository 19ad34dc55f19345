package logfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
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
const name = "job/eventlog"

// openLog opens the log on a disk, after the process that had it open ended.
func openLog(t require.TestingT, d *disk, p logfile.SyncPolicy) *logfile.Log {
	clear(d.locked)
	l, err := logfile.Open(name, logfile.Options{FS: d, Policy: p})
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
	require.Zero(t, l.Durable())
	require.NoError(t, l.Append([]byte(lines(0, 2))))
	require.NoError(t, l.Close())

	_, err = logfile.Create(path, logfile.Options{})
	require.ErrorIs(t, err, fs.ErrExist)
	requireError(t, err, "create")

	l, err = logfile.Open(path, logfile.Options{})
	require.NoError(t, err)
	require.EqualValues(t, len(lines(0, 2)), l.Size())
	require.Equal(t, l.Size(), l.Durable())
	require.NoError(t, l.Append([]byte(line(2))))
	require.NoError(t, l.Close())
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, lines(0, 3), string(got))
}

func TestALogIsPrivateUnlessOptionsSayOtherwise(t *testing.T) {
	d := newDisk()
	for i, want := range []fs.FileMode{0o600, 0o640} {
		path := fmt.Sprintf("job/%d", i)
		_, err := logfile.Create(path, logfile.Options{FS: d, Mode: []fs.FileMode{0, fs.ModeDir | 0o640}[i]})
		require.NoError(t, err)
		require.Equal(t, want, d.names[path].mode)
	}
}

func TestTheNameOfALogIsDurableBeforeItIsUsed(t *testing.T) {
	for _, policy := range []logfile.SyncPolicy{logfile.SyncAlways, logfile.SyncGroup} {
		d := newDisk()
		_, err := logfile.Create(name, logfile.Options{FS: d, Policy: policy})
		require.NoError(t, err)
		d.crash()
		require.Empty(t, d.read(name))

		// Created by a process that was killed before it synced the directory.
		d = newDisk()
		_, err = logfile.Create(name, logfile.Options{FS: d, Policy: logfile.SyncNever})
		require.NoError(t, err)
		require.Zero(t, d.count("syncdir"))
		openLog(t, d, policy)
		d.crash()
		require.Empty(t, d.read(name))
	}
}

func TestOpenMakesDurableWhatItRead(t *testing.T) {
	d := with(name, "")
	l := openLog(t, d, logfile.SyncNever)
	require.NoError(t, l.Append([]byte(lines(0, 3))))
	require.EqualValues(t, len(lines(0, 3)), openLog(t, d, logfile.SyncGroup).Durable())
	d.crash()
	require.Equal(t, lines(0, 3), d.read(name))

	// A new one has nothing but its name.
	d = newDisk()
	_, err := logfile.Create(name, logfile.Options{FS: d})
	require.NoError(t, err)
	require.Zero(t, d.count("sync"))
	require.Equal(t, 1, d.count("syncdir"))
}

func TestWhatFailsInOpenLeavesNothingBehind(t *testing.T) {
	for _, op := range []string{"open", "stat", "read", "sync", "syncdir"} {
		d := with(name, lines(0, 2))
		d.fail(op, fault{err: errDisk})
		_, err := logfile.Open(name, logfile.Options{FS: d})
		require.ErrorIs(t, err, errDisk, op)
		requireError(t, err, "open")
		require.Equal(t, lines(0, 2), d.read(name))
		require.Equal(t, d.count("open")-d.count("close"), map[bool]int{true: 1}[op == "open"], op)

		d = newDisk()
		if op == "read" || op == "sync" {
			continue // there is nothing to read or sync
		}
		d.fail(op, fault{err: errDisk})
		_, err = logfile.Create(name, logfile.Options{FS: d})
		require.ErrorIs(t, err, errDisk, op)
		requireError(t, err, "create")
		require.Empty(t, d.names)
	}
}

func TestOpenRefusesANameThatIsNotAFile(t *testing.T) {
	d := newDisk()
	d.names[name] = &node{id: 1, mode: fs.ModeNamedPipe}
	_, err := logfile.Open(name, logfile.Options{FS: d})
	require.ErrorContains(t, err, "not a regular file")
	_, err = logfile.Repair(name, logfile.RepairOptions{FS: d})
	require.ErrorContains(t, err, "not a regular file")
	_, err = logfile.OpenReader(name, logfile.ReaderOptions{FS: d})
	require.ErrorContains(t, err, "not a regular file")

	_, err = logfile.Open(t.TempDir(), logfile.Options{})
	requireError(t, err, "open")
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
			d := with(name, tt.content)
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
			require.Equal(t, tt.content, d.read(name))
			require.Zero(t, d.count("sync"))
		})
	}
}

func TestALogThatShrinksWhileItIsOpenedIsNotOpened(t *testing.T) {
	d := with(name, lines(0, 2))
	d.fail("read", fault{n: len(line(0)), err: io.EOF})
	_, err := logfile.Open(name, logfile.Options{FS: d})
	require.ErrorIs(t, err, logfile.ErrChanged)
	d.fail("read", fault{n: len(line(0)), err: io.EOF})
	_, err = logfile.Repair(name, logfile.RepairOptions{FS: d, Cut: true})
	require.ErrorIs(t, err, logfile.ErrChanged)
	require.Equal(t, lines(0, 2), d.read(name))
}

func TestABatchIsWrittenWithOneCall(t *testing.T) {
	d := with(name, line(0))
	l := openLog(t, d, logfile.SyncGroup)
	require.NoError(t, l.Append([]byte(lines(1, 100))))
	require.NoError(t, l.Append(nil))
	require.NoError(t, l.Append([]byte{}))
	require.Equal(t, 1, d.count("write"))
	require.Equal(t, lines(0, 100), d.read(name))
	require.EqualValues(t, len(lines(0, 100)), l.Size())
}

func TestThePolicySaysWhenABatchIsDurable(t *testing.T) {
	size := int64(len(lines(0, 3)))
	for policy, tt := range map[logfile.SyncPolicy]struct {
		appended, synced int64
		syncs            int // of one Append, then two Syncs
	}{
		logfile.SyncAlways:      {size, size, 1},
		logfile.SyncGroup:       {0, size, 1},
		logfile.SyncNever:       {size, size, 0},
		logfile.SyncPolicy(200): {size, size, 1}, // the zero value's
	} {
		d := with(name, "")
		l := openLog(t, d, policy)
		before := d.count("sync")
		require.NoError(t, l.Append([]byte(lines(0, 3))))
		require.Equal(t, size, l.Size())
		require.Equal(t, tt.appended, l.Durable(), policy)
		require.NoError(t, l.Sync())
		require.NoError(t, l.Sync())
		require.Equal(t, tt.synced, l.Durable(), policy)
		require.Equal(t, before+tt.syncs, d.count("sync"), policy)
		d.crash()
		if policy != logfile.SyncNever {
			require.Equal(t, lines(0, 3), d.read(name))
		}
	}
}

// EL-4: a flush waits for all batches before it.
func TestSyncCoversAllBatchesBeforeIt(t *testing.T) {
	t.Log("EL-4")
	d := with(name, "")
	l := openLog(t, d, logfile.SyncGroup)
	for i := range 10 {
		require.NoError(t, l.Append([]byte(line(i))))
	}
	require.Zero(t, l.Durable())
	require.NoError(t, l.Sync())
	require.Equal(t, l.Size(), l.Durable())
	require.NoError(t, l.Append([]byte(line(10))))
	d.crash()
	require.Equal(t, lines(0, 10), d.read(name))
}

func TestCloseSyncsWhatIsNotDurable(t *testing.T) {
	d := with(name, "")
	l := openLog(t, d, logfile.SyncGroup)
	require.NoError(t, l.Append([]byte(lines(0, 2))))
	require.NoError(t, l.Close())
	require.Equal(t, l.Size(), l.Durable())
	d.crash()
	require.Equal(t, lines(0, 2), d.read(name))

	for _, err := range []error{l.Close(), l.Append(nil), l.Append([]byte(line(2))), l.Sync(), new(logfile.Log).Close()} {
		require.ErrorIs(t, err, fs.ErrClosed)
		require.NotErrorIs(t, err, logfile.ErrFailed)
	}

	l = openLog(t, d, logfile.SyncGroup)
	require.NoError(t, l.Append([]byte(line(2))))
	d.fail("sync", fault{err: errDisk})
	requireError(t, l.Close(), "close")
	require.Equal(t, lines(0, 2), d.read(name))
	require.ErrorIs(t, l.Close(), fs.ErrClosed)

	l = openLog(t, d, logfile.SyncGroup)
	d.fail("close", fault{err: errDisk})
	require.ErrorIs(t, requireError(t, l.Close(), "close"), errDisk)
	require.Equal(t, d.count("open"), d.count("close"))
}

func TestAnInvalidBatchIsRefusedWhole(t *testing.T) {
	d := with(name, line(0))
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
	require.Zero(t, d.count("write"))
	require.NoError(t, l.Append([]byte(line(1))))
	require.Equal(t, lines(0, 2), d.read(name))
}

func TestABatchHasALimitByDefault(t *testing.T) {
	d := with(name, "")
	l := openLog(t, d, logfile.SyncNever)
	err := l.Append(bytes.Repeat([]byte("x"), logfile.DefaultMaxBatch+1))
	require.ErrorIs(t, err, logfile.ErrBatch)
	require.ErrorContains(t, err, fmt.Sprint("the limit is ", logfile.DefaultMaxBatch))
}

// EL-4: earlier bytes stay, the error comes once, and the log goes on.
func TestAFailedWriteIsTakenBackAndTheLogGoesOn(t *testing.T) {
	t.Log("EL-4")
	batch := lines(2, 5)
	for what, tt := range map[string]struct {
		f  fault
		is error
	}{
		"nothing written":          {fault{0, 0, errDisk, nil}, errDisk},
		"a byte written":           {fault{1, 0, errDisk, nil}, errDisk},
		"lines written":            {fault{len(lines(2, 4)), 0, errDisk, nil}, errDisk},
		"all written and an error": {fault{len(batch), 0, errDisk, nil}, errDisk},
		"short without an error":   {fault{7, 0, nil, nil}, io.ErrShortWrite},
		"more counted than there":  {fault{len(batch), 1, nil, nil}, nil},
		"less counted than there":  {fault{len(batch), -1, nil, nil}, io.ErrShortWrite},
		"a negative count":         {fault{3, -9, nil, nil}, nil},
	} {
		for _, policy := range []logfile.SyncPolicy{logfile.SyncAlways, logfile.SyncGroup, logfile.SyncNever} {
			d := with(name, line(0))
			l := openLog(t, d, policy)
			require.NoError(t, l.Append([]byte(line(1))))
			d.fail("write", tt.f)
			err := l.Append([]byte(batch))
			requireError(t, err, "append")
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is, what)
			}
			require.NotErrorIs(t, err, logfile.ErrFailed)
			require.Equal(t, lines(0, 2), d.read(name), what)
			require.EqualValues(t, len(lines(0, 2)), l.Size())
			require.NoError(t, l.Append([]byte(batch)))
			require.NoError(t, l.Sync())
			require.Equal(t, lines(0, 5), d.read(name), what)
			require.NoError(t, l.Close())
		}
	}
}

func TestAFullDiskTakesBatchesAgainWhenThereIsSpace(t *testing.T) {
	d := with(name, line(0))
	d.space = 50
	l := openLog(t, d, logfile.SyncAlways)
	for range 3 {
		err := l.Append([]byte(lines(1, 3)))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NotErrorIs(t, err, logfile.ErrFailed)
		require.Equal(t, line(0), d.read(name))
	}
	d.space = -1
	require.NoError(t, l.Append([]byte(lines(1, 3))))
	require.Equal(t, lines(0, 3), d.read(name))
}

// Otherwise the next batch would go where the disk has what is left of this one,
// and a crash could leave a mixture.
func TestWhatIsTakenBackIsOffTheDiskBeforeTheNextBatch(t *testing.T) {
	d := with(name, line(0))
	l := openLog(t, d, logfile.SyncGroup)
	d.fail("write", fault{n: 20, err: errDisk})
	require.Error(t, l.Append([]byte(line(1))))
	require.Empty(t, d.names[name].pending)

	// There is nothing to sync where nothing was written.
	syncs := d.count("sync")
	d.fail("write", fault{n: 0, err: errDisk})
	require.Error(t, l.Append([]byte(line(1))))
	require.Equal(t, syncs, d.count("sync"))
}

// requireFailed checks that a log refuses all, and says the cause no more.
func requireFailed(t *testing.T, l *logfile.Log, d *disk, stands string) {
	before := d.read(name)
	calls := len(d.calls)
	for range 2 {
		for op, err := range map[string]error{"append": l.Append([]byte(line(9))), "sync": l.Sync()} {
			require.ErrorIs(t, err, logfile.ErrFailed)
			require.NotErrorIs(t, err, errDisk)
			require.NotErrorIs(t, err, logfile.ErrChanged)
			require.EqualValues(t, len(stands), requireError(t, err, op).Offset())
		}
	}
	require.EqualValues(t, len(stands), l.Size())
	require.Equal(t, l.Size(), l.Durable())
	require.Len(t, d.calls, calls)
	require.NoError(t, l.Close())
	require.Equal(t, before, d.read(name))
}

func TestAWriteThatCannotBeTakenBackEndsTheLog(t *testing.T) {
	for _, op := range []string{"stat", "truncate", "sync"} {
		for _, policy := range []logfile.SyncPolicy{logfile.SyncAlways, logfile.SyncGroup, logfile.SyncNever} {
			d := with(name, line(0))
			l := openLog(t, d, policy)
			if policy == logfile.SyncNever && op == "sync" {
				continue // none is called
			}
			d.fail("write", fault{n: 20, err: syscall.EIO})
			d.fail(op, fault{err: errDisk})
			err := l.Append([]byte(line(1)))
			require.ErrorIs(t, err, logfile.ErrFailed)
			require.ErrorIs(t, err, errDisk)
			require.ErrorIs(t, err, syscall.EIO)
			requireError(t, err, "append")
			// The second attempt to cut had no fault.
			require.Equal(t, line(0), d.read(name))
			requireFailed(t, l, d, line(0))
		}
	}

	d := with(name, line(0))
	l := openLog(t, d, logfile.SyncAlways)
	d.fail("write", fault{n: 20, err: syscall.EIO})
	d.fail("truncate", fault{err: errDisk})
	d.fail("truncate", fault{err: errDisk})
	require.ErrorContains(t, l.Append([]byte(line(1))), "cutting off what is not durable")
	requireFailed(t, l, d, line(0))
	_, err := logfile.Open(name, logfile.Options{FS: d})
	require.ErrorIs(t, err, eventlog.ErrTorn)
}

// After a failed fsync the system shows bytes that are not on the disk and calls
// the next fsync a success.
func TestAFailedSyncCutsOffWhatIsNotDurableAndEndsTheLog(t *testing.T) {
	for _, policy := range []logfile.SyncPolicy{logfile.SyncAlways, logfile.SyncGroup} {
		d := with(name, lines(0, 2))
		l := openLog(t, d, policy)
		d.fail("sync", fault{err: errDisk})
		op := "append"
		err := l.Append([]byte(lines(2, 4)))
		if policy == logfile.SyncGroup {
			require.NoError(t, err)
			require.NoError(t, l.Append([]byte(line(4))))
			op, err = "sync", l.Sync()
		}
		require.ErrorIs(t, err, logfile.ErrFailed)
		require.ErrorIs(t, err, errDisk)
		requireError(t, err, op)
		require.Equal(t, lines(0, 2), d.read(name))
		requireFailed(t, l, d, lines(0, 2))

		l = openLog(t, d, policy)
		require.NoError(t, l.Append([]byte(lines(7, 9))))
		require.NoError(t, l.Close())
		d.crash()
		require.Equal(t, lines(0, 2)+lines(7, 9), d.read(name))
	}
}

// Else the next batch would go where the disk may have what was cut off.
func TestWhatAFailedSyncCutOffIsOffTheDiskWhenTheLogIsOpenAgain(t *testing.T) {
	for _, content := range []string{"", line(0)} {
		d := with(name, content)
		d.coin = func() bool { return true }
		l := openLog(t, d, logfile.SyncGroup)
		require.NoError(t, l.Append([]byte(line(1))))
		d.fail("sync", fault{err: errDisk})
		require.ErrorIs(t, l.Sync(), logfile.ErrFailed)
		require.Equal(t, content+line(1), string(d.names[name].stable))
		openLog(t, d, logfile.SyncGroup)
		require.Equal(t, content, string(d.names[name].stable))
	}
}

func TestSyncNoticesThatOthersChangedTheLog(t *testing.T) {
	for what, change := range map[string]func(d *disk){
		"shrank":   func(d *disk) { d.names[name].cache = d.names[name].cache[:5] },
		"emptied":  func(d *disk) { d.names[name].cache = nil },
		"grew":     func(d *disk) { d.names[name].cache = append(d.names[name].cache, line(7)...) },
		"replaced": func(d *disk) { d.put(name, lines(0, 2)) },
		"removed":  func(d *disk) { delete(d.names, name) },
	} {
		d := with(name, line(0))
		l := openLog(t, d, logfile.SyncGroup)
		require.NoError(t, l.Append([]byte(line(1))))
		change(d)
		left := d.read(name)
		err := l.Sync()
		require.ErrorIs(t, err, logfile.ErrChanged, what)
		require.ErrorIs(t, err, logfile.ErrFailed)
		requireError(t, err, "sync")
		require.Equal(t, left, d.read(name), "nothing is cut off")
		requireFailed(t, l, d, line(0))
	}

	d := with(name, line(0))
	l := openLog(t, d, logfile.SyncAlways)
	d.fail("statname", fault{err: errDisk})
	err := l.Append([]byte(line(1)))
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, err, logfile.ErrFailed)
	requireFailed(t, l, d, line(0))
}

// A cut must neither make a file grow, with zeros, nor take what others wrote.
func TestAFileThatOthersChangedIsNotCut(t *testing.T) {
	for what, change := range map[string]func(d *disk){
		"shrank": func(d *disk) { d.names[name].cache = d.names[name].cache[:5] },
		"grew":   func(d *disk) { d.names[name].cache = append(d.names[name].cache, lines(7, 9)...) },
	} {
		for _, op := range []string{"write", "sync"} {
			d := with(name, line(0))
			l := openLog(t, d, logfile.SyncAlways)
			d.fail(op, fault{n: 3, err: errDisk, then: func() { change(d) }})
			err := l.Append([]byte(line(1)))
			require.ErrorIs(t, err, logfile.ErrFailed, what)
			require.ErrorIs(t, err, logfile.ErrChanged)
			require.ErrorIs(t, err, errDisk)
			require.Zero(t, d.count("truncate"))
		}
	}
}
