package archive_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
)

// walk reads with Walk, and returns the jobs in the order in which they came.
func walk(b []byte, l archive.Limits) (*archive.Archive, []archive.Job, error) {
	var jobs []archive.Job
	a, err := archive.Walk(bytes.NewReader(b), l, func(j archive.Job) error {
		jobs = append(jobs, j)
		return nil
	})
	return a, jobs, err
}

// requireWalk requires that Walk reads what Read reads. Of a job whose keys are apart
// it may say that it failed.
func requireWalk(t require.TestingT, b []byte, l archive.Limits) {
	want, wantErr := archive.Read(bytes.NewReader(b), l)
	got, jobs, err := walk(b, l)
	require.Empty(t, got.Jobs)
	if wantErr != nil {
		return // they keep different amounts, and so may end at different places
	}
	require.NoError(t, err)
	require.Equal(t, keys(want), keys(got))
	wantMax, wantOK := want.MaxID()
	gotMax, gotOK := got.MaxID()
	require.Equal(t, wantMax, gotMax)
	require.Equal(t, wantOK, gotOK)
	failures := map[string]bool{}
	for _, f := range got.Failures {
		require.False(t, failures[f.Path] && f.ID != 0, "two failures of a job")
		failures[f.Path] = true
	}
	for _, f := range want.Failures {
		require.True(t, failures[f.Path])
	}
	given := map[jobid.ID]archive.Job{}
	for _, j := range jobs {
		require.NotContains(t, given, j.ID)
		given[j.ID] = j
	}
	for _, j := range want.Jobs {
		if !failures[strings.TrimSuffix(dir(j.ID), "/")] {
			require.Equal(t, j, given[j.ID])
		}
	}
	require.LessOrEqual(t, len(jobs), len(want.Jobs)+len(got.Failures))
}

func TestWalkGivesTheJobsInTheOrderOfTheArchive(t *testing.T) {
	lists := [][]entry{
		job(3), job(1 << 40), job(2), job(5)[:3], {{path: dir(6) + "R", to: "x"}}, {{path: "job/x/y/eventlog"}}, {{path: "resource/R", value: "R"}},
		{{path: "checkpoint/job-manager", value: `{"max_jobid":3}`}}, {{path: "job/0000/"}}, {{path: dir(9)}, {path: dir(9) + "eventlog", value: submitted}, {path: dir(9) + "jobspec"}},
	}
	rapid.Check(t, func(rt *rapid.T) {
		all := join(rapid.Permutation(lists).Draw(rt, "order")...)
		b := pack(t, all...)
		want := read(t, b)
		a, jobs, err := walk(b, archive.Limits{})
		require.NoError(rt, err)
		require.Equal(rt, texts(want), texts(a))
		requireWalk(rt, b, archive.Limits{})
		var order []jobid.ID
		for _, e := range all {
			for _, id := range []jobid.ID{3, 1 << 40, 2} {
				if e.path == dir(id)+"J" {
					order = append(order, id)
				}
			}
		}
		requireGood(t, &archive.Archive{Jobs: jobs}, order...)

		// Cut anywhere, both have the same.
		n := rapid.IntRange(0, len(b)).Draw(rt, "cut")
		want, wantErr := archive.Read(bytes.NewReader(b[:n]), archive.Limits{})
		a, jobs, err = walk(b[:n], archive.Limits{})
		require.Equal(rt, wantErr, err)
		require.Equal(rt, texts(want), texts(a))
		slices.SortFunc(jobs, func(a, b archive.Job) int { return cmp.Compare(a.ID, b.ID) })
		require.Equal(rt, want.Jobs, jobs)
	})
}

func TestAJobWhoseKeysAreApartIsAFailure(t *testing.T) {
	one := job(1)
	for _, late := range []entry{one[1], one[2], one[3], one[5], {path: dir(1) + "R", to: "x"}, {path: strings.TrimSuffix(dir(1), "/"), value: "x"}} {
		a, jobs, err := walk(pack(t, join(one, job(2), []entry{late, late}, job(3), []entry{late})...), archive.Limits{})
		require.NoError(t, err)
		requireGood(t, &archive.Archive{Jobs: jobs}, 1, 2, 3)
		require.Equal(t, []string{`archive: "job/0000/0000/0000/0001": keys of the job are not together`}, texts(a))
	}
	// What is not kept may be anywhere.
	for _, late := range []entry{one[0], one[4], {path: dir(1)}, {path: dir(1) + "guest/"}} {
		a, _, err := walk(pack(t, join(one, job(2), []entry{late})...), archive.Limits{})
		require.NoError(t, err)
		require.Empty(t, a.Failures)
	}
	// A job that failed has failed once.
	a, jobs, err := walk(pack(t, join(one[:5], job(2), one)...), archive.Limits{})
	require.NoError(t, err)
	requireGood(t, &archive.Archive{Jobs: jobs}, 2)
	require.Equal(t, []string{`archive: "job/0000/0000/0000/0001": no jobspec`}, texts(a))
}

func TestAnErrorOfTheFunctionEndsAWalk(t *testing.T) {
	enough := errors.New("enough")
	for _, n := range []int{1, 2, 3} {
		calls := 0
		a, err := archive.Walk(bytes.NewReader(pack(t, join(job(1), job(2), job(3))...)), archive.Limits{}, func(archive.Job) error {
			if calls++; calls == n {
				return enough
			}
			return nil
		})
		require.Equal(t, enough, err)
		require.Equal(t, n, calls)
		require.Empty(t, a.Failures)
		id, _ := a.MaxID()
		require.EqualValues(t, n, id)
	}
}

func TestAWalkHoldsOneJob(t *testing.T) {
	const n = 500
	var all []entry
	held := 256
	for id := range jobid.ID(n) {
		all = append(all, job(100+id)...)
	}
	for _, e := range job(100) {
		if !strings.HasSuffix(e.path, "/J") && !strings.HasSuffix(e.path, "/output") {
			held += len(e.value)
		}
	}
	b := pack(t, all...)
	_, jobs, err := walk(b, archive.Limits{HeldBytes: int64(held), Entries: n})
	require.NoError(t, err)
	require.Len(t, jobs, n)
	_, jobs, err = walk(b, archive.Limits{HeldBytes: int64(held) - 1})
	require.ErrorIs(t, err, archive.ErrLimit)
	require.Empty(t, jobs)
	_, jobs, err = walk(b, archive.Limits{Entries: n - 1})
	require.ErrorIs(t, err, archive.ErrLimit)
	require.Len(t, jobs, n-1)
}

func ExampleWalk() {
	a, err := archive.Walk(exampleDump(), archive.Limits{}, func(j archive.Job) error {
		fmt.Println(uint64(j.ID), len(j.Eventlog))
		return nil
	})
	fmt.Println(len(a.Failures), err)
	// Output:
	// 8069840896 92
	// 1 <nil>
}
