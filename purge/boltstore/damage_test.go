package boltstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/boltstore"
)

// sample fills a store such that its file has a page of each kind, and returns its path.
func sample(t testing.TB) string {
	s, path := open(t)
	mixed := func(id jobid.ID, kind joblife.RecordKind, text string) joblife.Record {
		return joblife.Record{Job: id, Kind: kind, Data: []byte(text)}
	}
	for first := jobid.ID(0); first < 40; first += 10 { // each transaction leaves free pages
		var list []joblife.Record
		for id := first; id < first+10; id++ {
			list = append(list,
				mixed(id+1, joblife.RecordJobspec, fmt.Sprintf(`{"jobspec":%d}`, id)),
				mixed(id+1, joblife.RecordR, `{"R":"`+strings.Repeat("r", 100)+`"}`),
				mixed(id+1, joblife.RecordEvent, life),
				mixed(id+1, joblife.RecordHousekeeping, string(clean(t))))
		}
		require.NoError(t, s.Append(list))
	}
	require.NoError(t, s.Append([]joblife.Record{
		mixed(99, joblife.RecordJobspec, `{"large":"`+strings.Repeat("x", 9000)+`"}`),
		mixed(99, joblife.RecordEvent, life), mixed(1, joblife.RecordEvent, cleanLine),
		mixed(0, joblife.RecordQueue, `{"name":"batch"}`),
	}))
	require.NoError(t, s.PutAside(7))
	require.NoError(t, s.Prepare(t.Context(), purge.Plan{Watermark: 4, Tombstones: []jobstate.Summary{{ID: 3, Inactive: 1}, {ID: 4, Inactive: 2}}}))
	_, err := s.Unlink(t.Context(), []jobid.ID{3, 4})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return path
}

// content returns all that a restart gets of a store, by job, and what it is told of damage.
func content(path string) (all map[jobid.ID]string, damage []string, err error) {
	s, err := boltstore.OpenReadOnly(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	all = make(map[jobid.ID]string)
	for r, err := range s.Records() {
		if err != nil {
			return nil, damage, err
		}
		if r.Kind == joblife.RecordInactive {
			damage = append(damage, fmt.Sprintf("%v: %s", r.Job, r.Data))
		}
		all[r.Job] += fmt.Sprintf("%v %s\n", r.Kind, r.Data)
	}
	return all, damage, nil
}

// harm opens a copy of a file that is not as it was. What opens is complete, or says of
// which job something is missing: told reports whether it did.
func harm(t *testing.T, path string, want map[jobid.ID]string, text []byte) (told bool) {
	require.NoError(t, os.WriteFile(path, text, 0o600))
	all, damage, err := content(path)
	if err != nil {
		require.ErrorIs(t, err, boltstore.ErrDamaged)
		return true
	}
	differs := 0
	for id, text := range want {
		if all[id] == text {
			continue
		}
		differs++
		require.True(t, slices.ContainsFunc(damage, func(s string) bool {
			return strings.HasPrefix(s, fmt.Sprintf("%v: damaged: ", id))
		}), "%v: %s", id, damage)
	}
	require.Len(t, all, len(want))
	require.Len(t, damage, differs)
	return differs > 0
}

// TestNoDamagedFileIsReadAsAnother cuts, fills and flips a file at all pages and at many
// other places. No crash, and nothing goes unnoticed.
func TestNoDamagedFileIsReadAsAnother(t *testing.T) {
	path := sample(t)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	want, damage, err := content(path)
	require.NoError(t, err)
	require.Empty(t, damage)
	require.Len(t, want, 40+1-1+1) // the queue and the watermark are of job 0
	size := len(bytes.TrimRight(text, "\x00"))
	page := os.Getpagesize()
	copied := filepath.Join(t.TempDir(), "copy.db")
	random := rand.New(rand.NewPCG(1, 2))
	times := 1
	if os.Getenv("JOBLIFE_DEEP") != "" {
		times = 10
	}
	places := func(n int) (list []int) {
		for at := 0; at < size; at += page {
			list = append(list, at, at+1, at+80)
		}
		for range n {
			list = append(list, random.IntN(size))
		}
		return list
	}
	t.Run("cut", func(t *testing.T) {
		for _, at := range places(25 * times) {
			told := harm(t, copied, want, text[:at])
			require.True(t, told || at > size-page, "cut at %d of %d", at, size)
			_, err := boltstore.Open(copied)
			require.Equal(t, told, err != nil)
			if err != nil {
				require.ErrorIs(t, err, boltstore.ErrDamaged)
				after, err := os.ReadFile(copied)
				require.NoError(t, err)
				require.True(t, bytes.Equal(text[:at], after), "Open wrote to it")
			}
		}
	})
	t.Run("fill", func(t *testing.T) {
		for _, at := range places(20 * times) {
			for _, n := range []int{1, 512, page} {
				bad := bytes.Clone(text)
				clear(bad[at:min(at+n, len(bad))])
				harm(t, copied, want, bad)
				for i := at; i < min(at+n, len(bad)); i++ {
					bad[i] = byte(random.Uint32())
				}
				harm(t, copied, want, bad)
			}
		}
	})
	t.Run("flip", func(t *testing.T) {
		told, flips := 0, 200*times
		for range flips {
			bit := random.IntN(size * 8)
			text[bit/8] ^= 1 << (bit % 8)
			if harm(t, copied, want, text) {
				told++
			}
			text[bit/8] ^= 1 << (bit % 8)
		}
		t.Logf("%d of %d flips were told; the others are in no data", told, flips)
		require.Greater(t, told, flips/3)
	})
}

func TestADamagedJobIsToldAndStopsNoOther(t *testing.T) {
	path := sample(t)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for at := range text { // pages that are free may have older copies
		if bytes.HasPrefix(text[at:], []byte(`{"jobspec":29}`)) {
			text[at+2] ^= 1
		}
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
	s, err := boltstore.Open(path)
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Read(30)
	require.ErrorIs(t, err, boltstore.ErrDamaged)
	require.ErrorContains(t, err, "boltstore: ƒX: damaged: the check digits of its jobspec do not match")
	_, err = s.Read(31)
	require.NoError(t, err)
	ev, damaged, err := s.Snapshot()
	require.NoError(t, err)
	require.Contains(t, ev.Active, jobid.ID(30), "it is not purged")
	require.ErrorIs(t, damaged[0], boltstore.ErrDamaged)
	require.Len(t, damaged, 1)
	require.Equal(t, 38, len(ev.Jobs)+len(ev.Active))
	var kinds []joblife.RecordKind
	for r, err := range s.Records() {
		require.NoError(t, err)
		if r.Job == 30 && !slices.Contains(kinds, r.Kind) {
			kinds = append(kinds, r.Kind)
		}
	}
	require.Equal(t, []joblife.RecordKind{
		joblife.RecordInactive, joblife.RecordHousekeeping, joblife.RecordR, joblife.RecordEvent,
	}, kinds, "what it holds stays known")

	_, left, err := joblife.Restore(time.Unix(1_700_000_100, 0), joblife.Config{}, s.Records())
	require.NoError(t, err)
	i := slices.IndexFunc(left.Quarantined, func(q joblife.Quarantined) bool { return q.Job == 30 })
	require.GreaterOrEqual(t, i, 0)
	require.ErrorContains(t, left.Quarantined[i].Err, `"damaged: the check digits of its jobspec do not match"`)
	require.NoError(t, s.PutAside(30))
	for r, err := range s.Records() {
		require.NoError(t, err)
		require.NotEqual(t, jobid.ID(30), r.Job)
	}
}

// A record that has got the key of another job is missed there, whatever else is damaged.
func TestAKeyThatIsDamagedIsToldBesideADamagedValue(t *testing.T) {
	s, path := open(t)
	require.NoError(t, s.Append(append(job(1, []byte(life), []byte("{}"), []byte("R")), job(2, []byte(life), []byte("{}"), nil)...)))
	require.NoError(t, s.Close())
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("jobs"))
		log, spec := []byte("\x00\x00\x00\x00\x00\x00\x00\x01e\x00\x00\x00\x00"), []byte("\x00\x00\x00\x00\x00\x00\x00\x02j")
		part, bad := bytes.Clone(b.Get(log)), bytes.Clone(b.Get(spec))
		bad[0] ^= 1
		moved := bytes.Clone(log)
		moved[7], moved[12] = 2, 1
		return errors.Join(b.Delete(log), b.Put(moved, part), b.Put(spec, bad))
	}))
	require.NoError(t, db.Close())
	_, _, err = content(path)
	require.ErrorIs(t, err, boltstore.ErrDamaged)
}

// TestAFileThatIsGoneIsNoticed takes the file away from a store that is open.
func TestAFileThatIsGoneIsNoticed(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		},
		"cut": func(path string) error { return os.Truncate(path, 0) },
	} {
		t.Run("it was "+name, func(t *testing.T) {
			s, path := open(t)
			good := joblife.Record{Job: 1, Kind: joblife.RecordEvent, Data: clean(t)}
			require.NoError(t, s.Append([]joblife.Record{good}))
			require.NoError(t, harm(path))
			_, read := s.Read(1)
			_, unlink := s.Unlink(t.Context(), []jobid.ID{1})
			_, _, fold := s.Snapshot()
			for _, err := range []error{
				s.Append([]joblife.Record{good}), s.Prepare(t.Context(), purge.Plan{Watermark: 5}), read, unlink, fold,
			} {
				require.ErrorIs(t, err, logfile.ErrChanged)
				require.ErrorContains(t, err, path)
				require.ErrorContains(t, err, "it was "+name)
			}
			require.NoError(t, s.Close())
		})
	}
}

func TestAnotherFormatIsRefused(t *testing.T) {
	for what, harm := range map[string]func(*bolt.Tx) error{
		"its end is missing": nil,
		`"x" is no bucket of a store`: func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte("x"))
			return err
		},
		"it has no bucket tombstones": func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("tombstones")) },
		"no key of it":                func(tx *bolt.Tx) error { return tx.Bucket([]byte("jobs")).Put([]byte("x"), nil) },
		`the check digits of the key do not match: "x"`: func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte("x"), make([]byte, 9))
		},
		"no format: perhaps a version before check digits wrote it": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("meta")).Delete([]byte("format"))
		},
		`its format is "2": a later version wrote it`: func(tx *bolt.Tx) error {
			key := []byte("format")
			return tx.Bucket([]byte("meta")).Put(key, boltstore.Seal(key, []byte("2")))
		},
	} {
		path := filepath.Join(t.TempDir(), "jobs.db")
		if harm == nil {
			require.NoError(t, os.WriteFile(path, []byte("no database"), 0o600))
		} else {
			s, err := boltstore.Open(path)
			require.NoError(t, err)
			require.NoError(t, s.Close())
			db, err := bolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, db.Update(harm))
			require.NoError(t, db.Close())
		}
		_, err := boltstore.Open(path)
		require.ErrorContains(t, err, path+": ")
		require.ErrorContains(t, err, what)
		_, err = boltstore.OpenReadOnly(path)
		require.ErrorContains(t, err, what)
	}
}
