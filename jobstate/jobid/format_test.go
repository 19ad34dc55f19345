package jobid_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/stretchr/testify/require"
)

// formats are all forms that this package prints and reads.
var formats = []jobid.Format{jobid.FormatF58, jobid.FormatF58Plain, jobid.FormatDec, jobid.FormatHex, jobid.FormatDotHex, jobid.FormatKVS}

// The interfaces that encoders look for.
var (
	_ encoding.TextAppender    = jobid.ID(0)
	_ encoding.TextMarshaler   = jobid.ID(0)
	_ encoding.TextUnmarshaler = (*jobid.ID)(nil)
	_ json.Marshaler           = jobid.ID(0)
	_ json.Unmarshaler         = (*jobid.ID)(nil)
	_ fmt.Stringer             = jobid.ID(0)
)

func TestAnIDPrintsInEveryForm(t *testing.T) {
	for _, tt := range []struct {
		id   jobid.ID
		want [6]string // in the order of formats
	}{
		{0, [6]string{"ƒ1", "f1", "0", "0x0", "0000.0000.0000.0000", "job.0000.0000.0000.0000"}},
		{57, [6]string{"ƒz", "fz", "57", "0x39", "0000.0000.0000.0039", "job.0000.0000.0000.0039"}},
		{58, [6]string{"ƒ21", "f21", "58", "0x3a", "0000.0000.0000.003a", "job.0000.0000.0000.003a"}},
		{6731191091817518, [6]string{
			"ƒuZZybuNNy", "fuZZybuNNy", "6731191091817518", "0x17e9fb8df16c2e",
			"0017.e9fb.8df1.6c2e", "job.0017.e9fb.8df1.6c2e",
		}},
		{math.MaxUint64, [6]string{
			"ƒjpXCZedGfVQ", "fjpXCZedGfVQ", "18446744073709551615", "0xffffffffffffffff",
			"ffff.ffff.ffff.ffff", "job.ffff.ffff.ffff.ffff",
		}},
	} {
		for i, f := range formats {
			require.Equal(t, tt.want[i], tt.id.Format(f), "%d as %v", uint64(tt.id), f)
		}
		require.Equal(t, tt.want[0]+" "+tt.want[0]+" "+tt.want[2], fmt.Sprintf("%v %[1]s %[1]d", tt.id))
		checkRoundTrip(t, tt.id)
	}
	require.PanicsWithValue(t, "jobid: unknown Format(6)", func() { jobid.ID(1).AppendFormat(nil, 6) })
}

// fataler is what testing.TB and rapid.T share.
type fataler interface {
	require.TestingT
	Helper()
}

func checkRoundTrip(t fataler, id jobid.ID) {
	t.Helper()
	for _, f := range formats {
		text := id.Format(f)
		got := id.AppendFormat([]byte("before"), f)
		require.Equal(t, "before"+text, string(got))
		back, err := jobid.Parse(text)
		require.NoError(t, err)
		require.Equal(t, id, back, "%v", f)
		// RFC 19, "Decoding Alternate FLUID Representations": leading and trailing white space
		// SHALL be ignored.
		for _, space := range []string{" ", "\t", "\n", "\v", "\f", "\r", "  \n"} {
			back, err = jobid.Parse(space + text + space)
			require.NoError(t, err)
			require.Equal(t, id, back, "%v", f)
		}
	}
	require.Equal(t, id.Format(jobid.FormatF58), id.String())
	require.Equal(t, id.Format(jobid.FormatKVS), id.KVSPath())

	appended, err := id.AppendText([]byte("before"))
	require.NoError(t, err)
	require.Equal(t, "before"+id.String(), string(appended))
	text, err := id.MarshalText()
	require.NoError(t, err)
	require.Equal(t, id.String(), string(text))
	var back jobid.ID
	require.NoError(t, back.UnmarshalText(text))
	require.Equal(t, id, back)

	number, err := json.Marshal(id)
	require.NoError(t, err)
	require.Equal(t, id.Format(jobid.FormatDec), string(number))
	back = 0
	require.NoError(t, json.Unmarshal(number, &back))
	require.Equal(t, id, back)
}

func TestAnIDIsANumberInJSONAndF58AsAKey(t *testing.T) {
	type message struct {
		ID   jobid.ID            `json:"id"`
		Jobs map[jobid.ID]string `json:"jobs"`
	}
	in := message{ID: math.MaxUint64, Jobs: map[jobid.ID]string{3363: "a", 57: "b"}}
	b, err := json.Marshal(in)
	require.NoError(t, err)
	require.Equal(t, `{"id":18446744073709551615,"jobs":{"ƒz":"b","ƒzz":"a"}}`, string(b))
	var out message
	require.NoError(t, json.Unmarshal(b, &out))
	require.Equal(t, in, out)
}

func TestAnIDKnowsWhenItWasMade(t *testing.T) {
	epoch := time.Date(2024, 1, 1, 0, 0, 0, 500_000, time.UTC)
	require.Equal(t, epoch, jobid.ID(0).Time(epoch))
	require.Equal(t, epoch.Add(1234*time.Millisecond), jobid.ID(1234<<24|5).Time(epoch))
	last := jobid.ID(math.MaxUint64)
	require.Equal(t, epoch.UnixMilli()+1<<40-1, last.Time(epoch).UnixMilli())
}
