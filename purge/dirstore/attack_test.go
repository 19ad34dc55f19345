package dirstore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/disk"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
)

// A model is what a user knows of a store.
type model struct {
	d    *disk.Disk
	s    *dirstore.Store
	want map[jobid.ID]dirstore.Stored // a job that is not there is zero
	n    int                          // of texts

	calls *rand.Rand // at which it stops: rapid draws small numbers more often
}

// do does a change of jobs, amid which the machine may stop. What a job may be after each
// step of it is in steps; it is the last if the change is not stopped.
func (m *model) do(t *rapid.T, change func() error, steps map[jobid.ID][]dirstore.Stored) {
	if rapid.Bool().Draw(t, "it is stopped") {
		m.d.StopAt(1 + m.calls.IntN(25))
	}
	err := change()
	if err == nil {
		for id, list := range steps {
			m.want[id] = list[len(list)-1]
		}
		steps = nil
	}
	if m.d.Stopped() {
		m.restart(t, steps)
		return
	}
	require.NoError(t, err)
	m.d.Heal()
}

// restart ends the machine, or only the process, and opens the store again, which may be
// stopped too.
func (m *model) restart(t *rapid.T, steps map[jobid.ID][]dirstore.Stored) {
	for again := true; again; again = m.d.Stopped() {
		if m.d.Heal(); rapid.IntRange(0, 3).Draw(t, "killed") > 0 {
			m.d.Crash()
		}
		if rapid.IntRange(0, 2).Draw(t, "it is stopped again") == 0 {
			m.d.StopAt(1 + m.calls.IntN(20))
		}
		var err error
		if m.s, err = tryOpenOn(m.d); !m.d.Stopped() {
			require.NoError(t, err)
		}
	}
	m.d.Heal()
	for id := jobid.ID(1); id <= most; id++ {
		m.want[id] = m.look(t, id, append(steps[id], m.want[id]))
	}
	require.Empty(t, m.s.Foreign())
	m.check(t)
}

// look returns a job, which is one of those that it may be.
func (m *model) look(t *rapid.T, id jobid.ID, may []dirstore.Stored) dirstore.Stored {
	j, err := m.s.Read(id)
	log := path.Join(id.KVSPath(), "eventlog")
	if errors.Is(err, dirstore.ErrDamaged) && !m.d.Ordered && len(may) > 1 { // it has a hole, where it is not durable
		_, err = logfile.Repair(log, logfile.RepairOptions{FS: folder{m.d, "."}, Cut: true})
		require.NoError(t, err)
		j, err = m.s.Read(id)
	}
	if errors.Is(err, fs.ErrNotExist) {
		j, err = dirstore.Stored{}, nil
	}
	require.NoError(t, err)
	j.Torn = 0
	require.Contains(t, may, j)
	return j
}

// check checks that the store has what it should, and nothing else.
func (m *model) check(t *rapid.T) {
	var want []jobid.ID
	for id := jobid.ID(1); id <= most; id++ {
		if m.look(t, id, []dirstore.Stored{m.want[id]}).ID > 0 {
			want = append(want, id)
		}
	}
	got, errs := list(m.s)
	require.Empty(t, errs)
	require.Equal(t, want, got)
}

// most is the greatest id.
const most = 4

func (m *model) job(t *rapid.T) (id jobid.ID, there bool) {
	id = jobid.ID(rapid.IntRange(1, most).Draw(t, "id"))
	return id, m.want[id].ID > 0
}

func (m *model) add(t *rapid.T) {
	id, there := m.job(t)
	if there {
		return
	}
	j := job(id)
	if rapid.Bool().Draw(t, "it has no R") {
		j.R = nil
	}
	m.do(t, func() error { return m.s.Add(j) }, map[jobid.ID][]dirstore.Stored{id: {j}})
}

func (m *model) append(t *rapid.T) {
	id, there := m.job(t)
	if !there {
		return
	}
	var batch []byte
	var steps []dirstore.Stored
	for range rapid.IntRange(1, 3).Draw(t, "lines") {
		m.n++
		batch = append(batch, line(fmt.Sprint("event-", m.n))...)
		j := m.want[id]
		j.Eventlog = slices.Concat(j.Eventlog, batch)
		steps = append(steps, j)
	}
	m.do(t, func() error { return m.s.Append(id, batch) }, map[jobid.ID][]dirstore.Stored{id: steps})
}

func (m *model) putR(t *rapid.T) {
	id, there := m.job(t)
	if !there {
		return
	}
	m.n++
	j := m.want[id]
	j.R = fmt.Appendf(nil, `{"R":"%d%s"}`, m.n, strings.Repeat("x", m.n%40))
	m.do(t, func() error { return m.s.PutR(id, j.R) }, map[jobid.ID][]dirstore.Stored{id: {j}})
}

func (m *model) unlink(t *rapid.T) {
	steps := make(map[jobid.ID][]dirstore.Stored)
	for range 2 {
		id, _ := m.job(t)
		steps[id] = []dirstore.Stored{{}}
	}
	m.do(t, func() error { return unlink(m.s, slices.Sorted(maps.Keys(steps))) }, steps)
}

// The machine stops at any call, and again in what a restart does: each job is there as it
// was before or after the change that was stopped, and each change that was acknowledged is
// there. Where the file system keeps no order, an append that was stopped can leave a hole:
// then the job is damaged behind what is durable, and no other is.
func TestAttackByStops(t *testing.T) {
	for range map[bool]int{false: 1, true: 30}[deep] {
		rapid.Check(t, func(t *rapid.T) {
			seed := rapid.Uint64().Draw(t, "coins")
			m := &model{d: disk.New(), want: make(map[jobid.ID]dirstore.Stored), calls: rand.New(rand.NewPCG(seed, 1))}
			m.d.Coin, m.d.Ordered = disk.Coins(seed), rapid.Bool().Draw(t, "ordered")
			s, err := dirstore.CreateOn(folder{m.d, "."})
			require.NoError(t, err)
			m.s = s
			t.Repeat(map[string]func(*rapid.T){
				"add": m.add, "append": m.append, "put R": m.putR, "unlink": m.unlink,
				"restart": func(t *rapid.T) { m.restart(t, nil) },
				"":        m.check,
			})
		})
	}
}

// The power fails at any call to the system.
func TestAttackByPowerCuts(t *testing.T) {
	openReal := func(dir string) (*dirstore.Store, error) {
		s, err := dirstore.Open(filepath.Join(dir, "store"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, dirstore.ErrNotStore) {
			s, err = dirstore.Create(filepath.Join(dir, "store"))
		}
		return s, err
	}
	has := func(s *dirstore.Store) (text string, err error) {
		for j, err := range s.Jobs() {
			if err != nil {
				return "", err
			}
			text += fmt.Sprintf("%v %s %s %s\n", j.ID, j.Eventlog, j.Jobspec, j.R)
		}
		return text, nil
	}
	cuts := disk.CutsOf(10, openReal, has, func(s *dirstore.Store, _ string, random *rand.Rand) error {
		id := jobid.ID(1 + random.IntN(4))
		_, err := s.Read(id)
		switch n := random.IntN(3); {
		case errors.Is(err, fs.ErrNotExist):
			return s.Add(job(id))
		case n == 0:
			return unlink(s, []jobid.ID{id})
		case n == 1:
			return s.PutR(id, fmt.Appendf(nil, `{"R":"%d"}`, random.IntN(1e9)))
		}
		return s.Append(id, line(fmt.Sprint("event-", random.IntN(1e9))))
	})
	cuts.Ordered, cuts.Soak = true, os.Getenv("JOBLIFE_SOAK")
	cuts.Run(t)
}
