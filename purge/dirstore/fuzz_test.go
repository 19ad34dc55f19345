package dirstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/purge/dirstore"
)

// A job is read with any bytes in its files, or is refused, and keeps what is appended then.
func FuzzRead(f *testing.F) {
	f.Add([]byte(line("submit")), []byte(nil))
	f.Add([]byte("{"), []byte("eventlog 00000000000000000000 00000000 jobspec 000000000 R 000000000 8d8e4a3e\n"))
	f.Add([]byte{}, []byte("eventlog"))
	f.Add([]byte(line("submit")), make([]byte, 2000))
	f.Fuzz(func(t *testing.T, events, sums []byte) {
		d := newDisk()
		d.Coin = func() bool { return false }
		s := createOn(t, d)
		require.NoError(t, s.Add(job(5)))
		for name, text := range map[string][]byte{"eventlog": events, "crc32c": sums} {
			d.Set("job.0000.0000.0000.0005/"+name, string(text))
		}
		j, readErr := s.Read(5)
		if readErr != nil {
			require.ErrorIs(t, readErr, dirstore.ErrDamaged)
		}
		appendErr := s.Append(5, line("memo"))
		if readErr == nil {
			require.NoError(t, appendErr)
		}
		d.Crash()
		s = openOn(t, d)
		if appendErr == nil && readErr == nil {
			require.Equal(t, string(j.Eventlog)+string(line("memo")), string(read(t, s, 5).Eventlog))
		}
		require.NoError(t, unlink(s, ids(5)))
		got, errs := list(s)
		require.Empty(t, got)
		require.Empty(t, errs)
	})
}
