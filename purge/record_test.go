package purge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

func TestPinsAndKindsPrint(t *testing.T) {
	require.Equal(t, "housekeeping", purge.Pin{Kind: purge.PinHousekeeping}.String())
	require.Equal(t, `waiter "a\nb"`, purge.Pin{Kind: purge.PinWaiter, By: "a\nb"}.String())
	require.Equal(t, `dependency "`+strings.Repeat("x", 64)+`"`, purge.Pin{Kind: purge.PinDependency, By: strings.Repeat("x", 200)}.String())
	require.Equal(t, "PinKind(0) PinKind(4)", purge.PinKind(0).String()+" "+purge.PinKind(4).String())
}

func TestAWatermarkIsWholeOrNothing(t *testing.T) {
	const whole = "watermark 0017e9fb8df16c2e"
	require.Equal(t, "x"+whole, string(purge.AppendWatermark([]byte("x"), 6731191091817518)))
	id, err := purge.ParseWatermark([]byte(whole))
	require.NoError(t, err)
	require.Equal(t, jobid.ID(6731191091817518), id)
	for n := range whole {
		_, err := purge.ParseWatermark([]byte(whole[:n]))
		require.ErrorContains(t, err, "malformed record")
	}
	for text, want := range map[string]int{
		"watermark 0017e9fb8df16c2e\n": 10, "Watermark 0017e9fb8df16c2e": 0, "watermark 0017E9fb8df16c2e": 10,
		"watermark 0017e9fb8df16c2g": 10, "": 0,
	} {
		_, err := purge.ParseWatermark([]byte(text))
		require.ErrorContains(t, err, "malformed record")
		require.ErrorContains(t, err, fmt.Sprintf("offset %d:", want), text)
	}
}

func FuzzWatermark(f *testing.F) {
	for _, s := range []string{"watermark 0017e9fb8df16c2e", "watermark ffffffffffffffff", "watermark 1", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		id, err := purge.ParseWatermark(text)
		if err != nil {
			require.ErrorContains(t, err, "malformed record")
			require.Zero(t, id)
			return
		}
		require.Equal(t, text, purge.AppendWatermark(nil, id))
	})
}
