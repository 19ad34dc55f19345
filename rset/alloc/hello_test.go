package alloc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// announced returns the answers to a hello as they are written.
func announced(t *testing.T, a alloc.Announcement) (lines []string) {
	t.Helper()
	for _, m := range a.Responses {
		b, err := alloc.Append(nil, m)
		require.NoError(t, err)
		again, err := reads[alloc.HelloResponse](string(b))
		require.NoError(t, err)
		want, err := m.R.Without(m.Free)
		require.NoError(t, err)
		held, err := again.R.Without(again.Free)
		require.NoError(t, err)
		require.True(t, rset.SameResources(want, held))
		lines = append(lines, again.ID.Format(jobid.FormatDec)+" "+again.R.String()+" free "+again.Free.String())
	}
	return lines
}

func holder(t *testing.T, id jobid.ID, free *idset.Set) alloc.HelloResponse {
	return alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: id, Priority: 16, UserID: 1, Submit: 5}, R: parseR(t, textR), Free: free}
}

// PR-9: each job that holds resources once, with R and the free ranks.
func TestEveryHolderIsAnnouncedOnceInTheOrderOfIDs(t *testing.T) {
	holders := []alloc.HelloResponse{holder(t, 30, nil), holder(t, 10, idset.Of(0, 2)), holder(t, 20, new(idset.Set))}
	a := alloc.Announce(holders, true)
	require.Equal(t, []string{
		"10 rank[0-3]/core[0-7] free 0,2",
		"20 rank[0-3]/core[0-7] free ",
		"30 rank[0-3]/core[0-7] free ",
	}, announced(t, a))
	require.Empty(t, a.Failed)
	require.Equal(t, alloc.Announcement{}, alloc.Announce(nil, false))
	require.Equal(t, a, alloc.Announce(holders, true), "a second hello has the same answer")
	require.Equal(t, jobid.ID(30), holders[0].ID, "the caller's slice keeps its order")
	require.Equal(t, alloc.JobInfo{ID: 10, Priority: 16, UserID: 1, Submit: 5}, a.Responses[0].JobInfo)
}

// PR-9: without partial-ok there is no key for free ranks, and still nothing
// that is held is left out.
func TestWithoutPartialOKAJobIsAnnouncedWithWhatItHolds(t *testing.T) {
	a := alloc.Announce([]alloc.HelloResponse{holder(t, 1, idset.Of(0, 2)), holder(t, 2, nil)}, false)
	require.Equal(t, []string{"1 rank[1,3]/core[0-7] free ", "2 rank[0-3]/core[0-7] free "}, announced(t, a))
	require.Empty(t, a.Failed)
}

// A rack's ssd may be held after all ranks were given back.
func TestAJobWithoutRanksLeftNeedsPartialOK(t *testing.T) {
	holders := []alloc.HelloResponse{holder(t, 1, idset.Of(0, 1, 2, 3)), holder(t, 2, nil)}
	require.Len(t, alloc.Announce(holders, true).Responses, 2)
	a := alloc.Announce(holders, false)
	require.Len(t, a.Responses, 1)
	require.Len(t, a.Failed, 1)
	require.EqualError(t, a.Failed[0].Err, "alloc: hello: job ƒ2: all ranks are freed, and the scheduler did not say partial-ok")
}

// One job that cannot be told is named; the others are told.
func TestAJobThatCannotBeAnnouncedIsNamed(t *testing.T) {
	none, empty := holder(t, 3, nil), holder(t, 4, nil)
	none.R, empty.R = nil, new(rset.R)
	holders := []alloc.HelloResponse{none, empty, holder(t, 5, idset.Of(3, 4)), holder(t, 1, nil), holder(t, 1, idset.Of(0)), holder(t, 6, nil)}
	for _, partialOK := range []bool{true, false} {
		a := alloc.Announce(holders, partialOK)
		require.Equal(t, []string{"1 rank[0-3]/core[0-7] free ", "6 rank[0-3]/core[0-7] free "}, announced(t, a))
		var texts []string
		for _, f := range a.Failed {
			texts = append(texts, f.Err.Error())
		}
		require.Equal(t, []string{
			"alloc: hello: job ƒ2: duplicate job",
			"alloc: hello: job ƒ4: no R, or an empty one",
			"alloc: hello: job ƒ5: no R, or an empty one",
			"alloc: hello: job ƒ6: the R does not have all freed ranks",
		}, texts)
		require.ErrorContains(t, a.Failed[0].Err, "duplicate job")
		require.Equal(t, jobid.ID(1), a.Failed[0].ID)
	}
}
