package lines

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
)

func TestTimesOfTheInputDoNotGoBack(t *testing.T) {
	c := (&Options{Now: 4}).NewClock()
	var seen []eventlog.Timestamp
	for _, at := range []eventlog.Timestamp{3, 5, 7, 6, 8} {
		require.True(t, c.Advance(at))
		seen = append(seen, c.Now())
	}
	require.Equal(t, []eventlog.Timestamp{4, 5, 7, 7, 8}, seen)
	require.Nil(t, c.At(c.Now().Time()), "nothing passes without input")
}

// Somebody may set the time of the day while a call waits.
func TestWhatPassesDoesNotHangOnTheTimeOfTheDay(t *testing.T) {
	now := new(Options).NewClock().Time()
	require.Contains(t, now.String(), " m=", "it has the monotonic reading")
	c := (&Options{Now: 4}).NewClock()
	c.Advance(5)
	require.Equal(t, eventlog.Timestamp(5).Time(), c.Time())
}

func TestTheTimeOfTheDayPasses(t *testing.T) {
	c := new(Options).NewClock()
	before := eventlog.FromTime(time.Now())
	require.False(t, c.Advance(before+3600), "the input does not count")
	require.GreaterOrEqual(t, c.Now(), before)
	require.LessOrEqual(t, c.Now(), eventlog.FromTime(time.Now()))
	<-c.At(time.Now().Add(-time.Hour))
	later := c.At(time.Now().Add(time.Hour))
	<-c.At(time.Now())
	require.Empty(t, later)
}
