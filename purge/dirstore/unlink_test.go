package dirstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
)

func TestUnlinkRemovesTheJobsAndNothingElse(t *testing.T) {
	s, dir := create(t, 1, 2, 3)
	require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(1), tomb(3)}, nil))
	require.NoError(t, unlink(s, []jobid.ID{3, 1, 1, 77}))
	require.NoError(t, unlink(s, []jobid.ID{3, 1}))
	s = reopen(t, s, dir)
	ids, errs := list(s)
	require.Equal(t, []jobid.ID{2}, ids)
	require.Empty(t, errs)
	require.Equal(t, []purge.Record{tomb(1), tomb(3)}, tombs(t, s))
	require.Equal(t, jobid.ID(3), s.Watermark(), "nothing was ever seen of 77")
	list, err := os.ReadDir(filepath.Join(dir, "trash"))
	require.NoError(t, err)
	require.Empty(t, list)
}

// I9: ids never come back.
func TestTheWatermarkIsTheGreatestOfAllEvidence(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, s *dirstore.Store, dir string)
		want jobid.ID
	}{
		{"of nothing", func(*testing.T, *dirstore.Store, string) {}, 0},
		{"of a watermark", func(t *testing.T, s *dirstore.Store, _ string) {
			require.NoError(t, s.PutWatermark(ctx, 9))
		}, 9},
		{"of a watermark that was lowered", func(t *testing.T, s *dirstore.Store, _ string) {
			require.NoError(t, s.PutWatermark(ctx, 9))
			require.NoError(t, s.PutWatermark(ctx, 8))
		}, 9},
		{"of the greatest watermark", func(t *testing.T, s *dirstore.Store, _ string) {
			require.NoError(t, s.PutWatermark(ctx, math.MaxUint64))
		}, math.MaxUint64},
		{"of a job", func(t *testing.T, s *dirstore.Store, _ string) {
			require.NoError(t, s.Add(job(9)))
			require.NoError(t, s.Add(job(3)))
		}, 9},
		{"of a job that was unlinked without a watermark", func(t *testing.T, s *dirstore.Store, _ string) {
			require.NoError(t, s.Add(job(9)))
			require.NoError(t, s.Add(job(3)))
			require.NoError(t, unlink(s, []jobid.ID{9}))
			require.NoError(t, unlink(s, []jobid.ID{3}))
		}, 9},
		{"of a damaged job", func(t *testing.T, s *dirstore.Store, dir string) {
			mkdir(t, dir, "job.0000.0000.0000.0009")
		}, 9},
		{"of a damaged job that was unlinked", func(t *testing.T, s *dirstore.Store, dir string) {
			mkdir(t, dir, "job.0000.0000.0000.0009")
			require.NoError(t, unlink(s, []jobid.ID{9}))
		}, 9},
		{"of a job on its way out", func(t *testing.T, s *dirstore.Store, dir string) {
			mkdir(t, dir, "trash", "job.0000.0000.0000.0009~1")
		}, 9},
		{"of a job on its way in", func(t *testing.T, s *dirstore.Store, dir string) {
			mkdir(t, dir, "new", "job.0000.0000.0000.0009")
		}, 9},
		{"of a tombstone", func(t *testing.T, s *dirstore.Store, _ string) {
			require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(9)}, nil))
		}, 9},
		{"of a tombstone that was dropped", func(t *testing.T, s *dirstore.Store, _ string) {
			require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(9)}, nil))
			require.NoError(t, s.PutTombstones(ctx, nil, []jobid.ID{9}))
		}, 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, dir := create(t)
			tt.do(t, s, dir)
			// Twice: what was evidence is cleaned up by the first.
			for range 2 {
				s = reopen(t, s, dir)
				require.Equal(t, tt.want, s.Watermark())
			}
			for _, sub := range []string{"trash", "new"} {
				list, err := os.ReadDir(filepath.Join(dir, sub))
				require.NoError(t, err)
				require.Empty(t, list)
			}
		})
	}
}

func TestAStoreWhoseWatermarkCannotBeReadIsNotOpened(t *testing.T) {
	for _, tt := range []struct {
		name, text string
	}{
		{"empty", ""},
		{"cut", "watermark 00000000000000"},
		{"without check digits", "watermark 0000000000000009\n"},
		{"without newline", strings.TrimSpace(mark(9))},
		{"too long", mark(9) + "\n"},
		{"other digits", "watermark 000000000000000A 00000000\n"},
		{"a digit that changed", strings.Replace(mark(9), "9", "8", 1)},
		{"much too long", strings.Repeat("0", 2000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, dir := create(t, 1)
			require.NoError(t, s.Close())
			writeMarks(t, tt.text, dir)
			_, _, err := dirstore.Open(dir, dirstore.Options{})
			require.True(t, errors.Is(err, dirstore.ErrDamaged) != errors.Is(err, dirstore.ErrLimit), err)
			require.ErrorContains(t, err, "dirstore: open "+dir+": watermark-1: ")
		})
	}
	t.Run("removed", func(t *testing.T) {
		s, dir := create(t, 1)
		require.NoError(t, s.Close())
		removeMarks(t, dir)
		_, _, err := dirstore.Open(dir, dirstore.Options{})
		require.ErrorIs(t, err, dirstore.ErrNotStore)
		_, err = dirstore.Create(dir, dirstore.Options{})
		require.ErrorContains(t, err, "not made by the store")
	})
}

func TestWhatAWriterOfTheWatermarkLeftIsIgnored(t *testing.T) {
	s, dir := create(t, 1)
	require.NoError(t, s.PutWatermark(ctx, 5))
	write(t, "watermark 00000000000000", dir, "watermark-1.new")
	s = reopen(t, s, dir)
	require.Equal(t, jobid.ID(5), s.Watermark())
	require.NoFileExists(t, filepath.Join(dir, "watermark-1.new"))
	write(t, "watermark 00000000000000", dir, "watermark-1.new")
	require.NoError(t, s.PutWatermark(ctx, 6))
	require.Equal(t, jobid.ID(6), reopen(t, s, dir).Watermark())
}

func TestForeignFilesStay(t *testing.T) {
	s, dir := create(t, 1, 2)
	write(t, "1", dir, "mine")
	mkdir(t, dir, "job.1")
	mkdir(t, dir, "job.0000.0000.0000.000A")
	mkdir(t, dir, "job.0000.0000.0000.0001~1")
	mkdir(t, dir, "job.0000.0000.0000.00011")
	write(t, "2", dir, "trash", "mine")
	write(t, "3", dir, "trash", "job.0000.0000.0000.0009")
	mkdir(t, dir, "trash", "job.0000.0000.0000.0001~01")
	write(t, "4", dir, "new", "mine")
	write(t, "5", dir, "job.0000.0000.0000.0001", "core")
	write(t, "5", dir, "job.0000.0000.0000.0001", "eventlog.torn-x")
	mkdir(t, dir, "job.0000.0000.0000.0001", "guest")
	write(t, "6", dir, "job.0000.0000.0000.0001", "guest", "eventlog")

	j, err := s.Read(1)
	require.NoError(t, err)
	require.Equal(t, job(1), j)
	require.NoError(t, unlink(s, []jobid.ID{1}))
	want := []string{
		"job.0000.0000.0000.0001~1", "job.0000.0000.0000.00011", "job.0000.0000.0000.000A", "job.1", "mine", "new/mine",
		"trash/job.0000.0000.0000.0001", "trash/job.0000.0000.0000.0001~01", "trash/job.0000.0000.0000.0009", "trash/mine",
	}
	for range 2 {
		ids, errs := list(s)
		require.Equal(t, []jobid.ID{2}, ids)
		require.Empty(t, errs)
		foreign, err := s.Foreign()
		require.NoError(t, err)
		require.ElementsMatch(t, want, foreign)
		for _, name := range []string{"core", "guest/eventlog", "eventlog.torn-x"} {
			require.FileExists(t, filepath.Join(dir, "trash/job.0000.0000.0000.0001", name))
		}
		require.NoFileExists(t, filepath.Join(dir, "trash/job.0000.0000.0000.0001/eventlog"))
		s = reopen(t, s, dir)
	}
	require.Equal(t, jobid.ID(2), s.Watermark(), "a stray file never raises it")

	// There may be more of the same name, but not without end.
	for i := range 100 {
		mkdir(t, dir, "job.0000.0000.0000.0001")
		write(t, "", dir, "job.0000.0000.0000.0001", "core")
		err = unlink(s, []jobid.ID{1, 2})
		if i < 99 {
			require.NoError(t, err)
		}
	}
	require.EqualError(t, err, "job.0000.0000.0000.0001: the trash has no free name")
	require.FileExists(t, filepath.Join(dir, "trash/job.0000.0000.0000.0001~99/core"))
	ids, _ := list(s)
	require.Empty(t, ids, "another job of the batch goes")
}

// symlink makes a symbolic link, or skips the test.
func symlink(t *testing.T, to string, elem ...string) {
	if err := os.Symlink(to, filepath.Join(elem...)); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("symbolic links need a privilege")
		}
		t.Fatal(err)
	}
}

func TestSymbolicLinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	for _, name := range []string{"eventlog", "jobspec", "R"} {
		write(t, string(line("secret")), outside, name)
	}
	s, dir := create(t, 1, 2)
	// A job that is a link, files that are links, and a job in the trash that is
	// one.
	symlink(t, outside, dir, "job.0000.0000.0000.0003")
	symlink(t, "job.0000.0000.0000.0002", dir, "job.0000.0000.0000.0004")
	require.NoError(t, os.Remove(filepath.Join(dir, "job.0000.0000.0000.0001", "R")))
	symlink(t, filepath.Join(outside, "R"), dir, "job.0000.0000.0000.0001", "R")
	symlink(t, outside, dir, "trash", "job.0000.0000.0000.0005")
	mkdir(t, dir, "new", "job.0000.0000.0000.0006")
	symlink(t, filepath.Join(outside, "eventlog"), dir, "new", "job.0000.0000.0000.0006", "eventlog")
	s = reopen(t, s, dir)

	ids, errs := list(s)
	require.Equal(t, []jobid.ID{2}, ids)
	require.Len(t, errs, 1)
	for _, id := range []jobid.ID{3, 4} {
		require.ErrorIs(t, s.PutR(id, []byte("x")), dirstore.ErrDamaged)
		require.ErrorIs(t, s.Append(id, line("memo")), dirstore.ErrDamaged)
	}
	require.ErrorContains(t, s.Add(job(6)), "not made by the store")
	require.NoError(t, s.PutR(1, []byte("own")), "the link is replaced")
	require.NoError(t, os.Remove(filepath.Join(dir, "job.0000.0000.0000.0001", "eventlog")))
	symlink(t, filepath.Join(outside, "eventlog"), dir, "job.0000.0000.0000.0001", "eventlog")
	require.ErrorIs(t, s.Append(1, line("memo")), dirstore.ErrDamaged)

	require.NoError(t, unlink(s, []jobid.ID{1, 3, 4}))
	s = reopen(t, s, dir)
	j, err := s.Read(2)
	require.NoError(t, err)
	require.Equal(t, job(2), j)
	for _, name := range []string{"eventlog", "jobspec", "R"} {
		text, err := os.ReadFile(filepath.Join(outside, name))
		require.NoError(t, err)
		require.Equal(t, string(line("secret")), string(text))
	}
	foreign, err := s.Foreign()
	require.NoError(t, err)
	require.Equal(t, []string{
		"job.0000.0000.0000.0003", "job.0000.0000.0000.0004", "new/job.0000.0000.0000.0006",
		"trash/job.0000.0000.0000.0001", "trash/job.0000.0000.0000.0005",
	}, foreign)
}

func TestAStoreWhoseOwnDirectoriesAreLinksIsNotOpened(t *testing.T) {
	for _, name := range []string{"trash", "new"} {
		s, dir := create(t, 1)
		require.NoError(t, s.Close())
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		symlink(t, "job.0000.0000.0000.0001", dir, name)
		_, _, err := dirstore.Open(dir, dirstore.Options{})
		require.ErrorContains(t, err, "not made by the store")
	}
}

// Each call of an Unlink fails once: no more than one job stays behind, and the
// error tells which. What stays in the trash is no error.
func TestAJobThatCannotBeMovedKeepsNoOther(t *testing.T) {
	newOne := newWorld(t)
	for k := 1; ; k++ {
		w := newOne(func() bool { return false })
		w.disk.calls, w.disk.failAt = nil, k
		err := unlink(w.s, ids(4, 5, 6))
		if len(w.disk.calls) < k {
			require.NoError(t, err)
			break
		}
		call := w.disk.calls[k-1]
		w.disk.failAt = 0
		left, errs := list(w.s)
		require.Empty(t, errs, call)
		require.LessOrEqual(t, len(left), 3+1, call)
		if len(left) > 3 {
			require.ErrorContains(t, err, left[3].KVSPath(), call)
		}
		require.NoError(t, unlink(w.s, ids(4, 5, 6)), call)
		left, _ = list(w.s)
		require.Equal(t, ids(1, 2, 3), left, call)
		trash, readErr := w.disk.ReadDir("trash")
		require.NoError(t, readErr)
		require.Empty(t, trash, call)
	}
}

func TestAJobIsNotLostIfThereIsNoTrash(t *testing.T) {
	s, dir := create(t, 1)
	require.NoError(t, os.Remove(filepath.Join(dir, "trash")))
	require.Error(t, unlink(s, []jobid.ID{1}))
	j, err := s.Read(1)
	require.NoError(t, err)
	require.Equal(t, job(1), j)
}

func TestOfTombstonesOfOneIDTheLastStays(t *testing.T) {
	s, dir := create(t)
	second := tomb(2)
	second.Result = jobstate.ResultCompleted
	require.NoError(t, s.PutTombstones(ctx, nil, []jobid.ID{1}))
	require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(2), tomb(1), second}, nil))
	require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(3)}, []jobid.ID{1, 99}))
	require.NoError(t, s.PutTombstones(ctx, nil, nil))
	require.Equal(t, []purge.Record{second, tomb(3)}, tombs(t, s))
	require.Equal(t, []purge.Record{second, tomb(3)}, tombs(t, reopen(t, s, dir)))
}

func TestTheGreatestAndTheLeastIDHaveTombstones(t *testing.T) {
	s, dir := create(t)
	require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(0), tomb(7), tomb(math.MaxUint64)}, nil))
	s = reopen(t, s, dir)
	require.Equal(t, []purge.Record{tomb(0), tomb(7), tomb(math.MaxUint64)}, tombs(t, s))
	require.NoError(t, s.PutTombstones(ctx, nil, []jobid.ID{0, math.MaxUint64}))
	require.Equal(t, []purge.Record{tomb(7)}, tombs(t, reopen(t, s, dir)))
}

func TestAJobThatCanBeNoTombstoneIsRefusedBeforeAnyOther(t *testing.T) {
	s, _ := create(t)
	require.Error(t, s.PutTombstones(ctx, []purge.Record{tomb(1), {ID: 2}}, nil))
	require.Empty(t, tombs(t, s))
	require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(1)}, nil))
	require.Equal(t, []purge.Record{tomb(1)}, tombs(t, s))
}

func TestManyTombstonesAreSeveralLines(t *testing.T) {
	s, dir := create(t)
	var put []purge.Record
	var drop []jobid.ID
	for i := range 2500 {
		put = append(put, tomb(jobid.ID(i)))
		drop = append(drop, jobid.ID(i+10_000))
	}
	require.NoError(t, s.PutTombstones(ctx, put, drop))
	text, err := os.ReadFile(filepath.Join(dir, "tombstones"))
	require.NoError(t, err)
	require.Equal(t, 5, strings.Count(string(text), "\n"))
	s = reopen(t, s, dir)
	require.Equal(t, put, tombs(t, s))
	s.CompactNext()
	put = append(put, tomb(2500))
	require.NoError(t, s.PutTombstones(ctx, put[2500:], nil))
	require.Equal(t, put, tombs(t, reopen(t, s, dir)))
}

func TestTheLogOfTombstonesIsBounded(t *testing.T) {
	d := newDisk()
	s := d.create(t)
	greatest, shrank, last := 0, 0, 0
	const batches, batch, stay = 70, 1000, 3000
	for i := range batches {
		var put []purge.Record
		var drop []jobid.ID
		for k := range batch {
			id := jobid.ID(i*batch + k)
			put = append(put, tomb(id))
			if id >= stay {
				drop = append(drop, id-stay)
			}
		}
		require.NoError(t, s.PutTombstones(ctx, put, drop))
		if i%10 == 9 {
			s = d.open(t) // which does not put it off
		}
		_, _, log := d.find("tombstones")
		if len(log.cache) < last {
			shrank++
		}
		last = len(log.cache)
		greatest = max(greatest, last)
	}
	require.Less(t, greatest, 1<<20+200<<10)
	require.GreaterOrEqual(t, shrank, 2)
	got := tombs(t, s)
	require.Len(t, got, stay)
	require.Equal(t, tomb(batches*batch-stay), got[0])
	require.Equal(t, jobid.ID(batches*batch-1), d.open(t).Watermark())
}

func TestATornBatchOfTombstonesIsCutOff(t *testing.T) {
	d := newDisk()
	s := d.create(t)
	require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(1)}, nil))
	require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(2), tomb(3)}, []jobid.ID{1}))
	_, _, n := d.find("tombstones")
	text := n.cache
	for cut := bytes.IndexByte(text, '\n') + 1; cut < len(text); cut++ {
		n.cache = text[:cut:cut]
		s := d.open(t)
		require.Equal(t, []purge.Record{tomb(1)}, tombs(t, s), "%d bytes", cut)
	}
	foreign, err := d.open(t).Foreign()
	require.NoError(t, err)
	require.Empty(t, foreign, "side files are the store's")
}

func TestAStoreWithADamagedTombstoneIsNotOpened(t *testing.T) {
	const good = goodLine
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"what was written", good + good, true},
		{"a line that is no event, before another", "{\n" + good, false},
		{"another event", string(line("memo")), false},
		{"another key", strings.Replace(good, `"drop"`, `"Drop"`, 1), false},
		{"a further key", strings.Replace(good, `"drop"`, `"x":1,"drop"`, 1), false},
		{"no array", strings.Replace(good, `["2"]`, `null`, 1), false},
		{"no id", strings.Replace(good, `"2"`, `"-2"`, 1), false},
		{"an id in another form", strings.Replace(good, `"2"`, `"02"`, 1), false},
		{"a number", strings.Replace(good, `"2"`, `2`, 1), false},
		{"no tombstone", strings.Replace(good, `failed`, `fail`, 1), false},
		{"no context", good[:49] + "}\n", false},
		{"white space", strings.Replace(good, `,"name"`, `, "name"`, 1), true},
		{"white space within", strings.Replace(good, `,"drop"`, `, "drop"`, 1), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDisk()
			require.NoError(t, d.create(t).PutTombstones(ctx, tombsOf(9), nil))
			_, _, n := d.find("tombstones")
			n.cache = []byte(tt.text)
			s, _, err := dirstore.Open(".", d.options())
			if tt.want {
				require.NoError(t, err)
				require.Equal(t, []purge.Record{tomb(1)}, tombs(t, s))
				return
			}
			require.ErrorIs(t, err, dirstore.ErrDamaged)
			require.Equal(t, tt.text, string(n.cache))
		})
	}
	t.Run("a directory", func(t *testing.T) {
		s, dir := create(t, 1)
		require.NoError(t, s.Close())
		require.NoError(t, os.Remove(filepath.Join(dir, "tombstones")))
		mkdir(t, dir, "tombstones")
		_, _, err := dirstore.Open(dir, dirstore.Options{})
		require.ErrorIs(t, err, dirstore.ErrDamaged)
	})
}

func TestErrorsTellTheOperationAndTheName(t *testing.T) {
	s, _ := create(t, 1)
	err := s.Add(job(1))
	require.EqualError(t, err, "dirstore: add job.0000.0000.0000.0001: file already exists")
	_, err = s.Read(2)
	require.ErrorContains(t, err, "dirstore: ƒ3: ")
	require.NotContains(t, err.Error(), "job.0000.0000.0000.0002")
	require.NoError(t, s.Close())
	require.ErrorContains(t, unlink(s, nil), "dirstore: unlink ")
	require.Contains(t, fmt.Sprint(s.Close()), "file already closed")
}
