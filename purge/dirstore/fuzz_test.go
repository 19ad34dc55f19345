package dirstore_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
)

// goodLine is a line of tombstones.
const goodLine = `{"timestamp":1699996421.5,"name":"tombstones","context":{"put":["1 0 1699996421.5 failed ran"],"drop":["2"],"crc32c":"d0305468"}}` + "\n"

// What is read as a line of tombstones means what was written.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(goodLine))
	f.Add([]byte(`{"timestamp":1,"name":"tombstones","context":{"put":[],"drop":["0","18446744073709551615"]}}` + "\n"))
	f.Add([]byte(`{"name":"tombstones","timestamp":1.0,"context":{"put":null,"drop":[]},"x":1}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := eventlog.Parse(text)
		if err != nil {
			return
		}
		r, err := dirstore.ParseRecord(e)
		if err != nil {
			require.ErrorIs(t, err, dirstore.ErrDamaged)
			return
		}
		again, err := dirstore.AppendRecord([]byte("x"), e.Timestamp, r)
		require.NoError(t, err)
		e, err = eventlog.Parse(again[1:])
		require.NoError(t, err)
		second, err := dirstore.ParseRecord(e)
		require.NoError(t, err)
		last, err := dirstore.AppendRecord([]byte("x"), e.Timestamp, second)
		require.NoError(t, err)
		require.Equal(t, string(again), string(last))
	})
}

// A watermark is read as it is written, and only so.
func FuzzMark(f *testing.F) {
	f.Add([]byte(mark(6731191091817518)))
	f.Add([]byte("watermark ffffffffffffffff"))
	f.Add([]byte("watermark FFFFFFFFFFFFFFFF\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		id, err := dirstore.ParseMark(text)
		if err == nil {
			require.Equal(t, string(text), mark(id))
		}
	})
}

// A store opens with any bytes in its files or refuses them, and keeps what it
// then is told beside what it showed.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(mark(9)), []byte(goodLine), []byte(line("submit")))
	f.Add([]byte(mark(9)), []byte(goodLine+goodLine[:40]), []byte("{"))
	f.Add([]byte("watermark 00000000000"), []byte("{}\n"+goodLine), []byte{})
	f.Fuzz(func(t *testing.T, markText, log, events []byte) {
		d := newDisk()
		d.coin = func() bool { return false }
		require.NoError(t, d.create(t).Add(job(5)))
		for name, text := range map[string][]byte{"watermark-1": markText, "watermark-2": markText, "tombstones": log, "job.0000.0000.0000.0005/eventlog": events} {
			_, _, n := d.find(name)
			if n == nil {
				n = &node{mode: 0o600}
				d.root.names[name], d.root.kept[name] = n, n
			}
			n.cache, n.stable = bytes.Clone(text), bytes.Clone(text)
		}
		s, _, err := dirstore.Open(".", d.options())
		if err != nil {
			require.True(t, errors.Is(err, dirstore.ErrDamaged) || errors.Is(err, dirstore.ErrLimit), err)
			_, _, n := d.find("watermark-1")
			require.Equal(t, markText, n.cache)
			return
		}
		old, err := dirstore.ParseMark(markText)
		require.NoError(t, err)
		require.GreaterOrEqual(t, s.Watermark(), max(old, 5))
		before := tombs(t, s)
		for _, j := range before {
			require.LessOrEqual(t, j.ID, s.Watermark())
		}
		j, readErr := s.Read(5)
		if readErr != nil {
			require.ErrorIs(t, readErr, dirstore.ErrDamaged)
		}
		require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(5)}, []jobid.ID{6}))
		s.CompactNext()
		require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(7)}, []jobid.ID{6}))
		appendErr := s.Append(5, line("memo"))
		if readErr == nil {
			require.NoError(t, appendErr)
		}
		high := s.Watermark()
		d.crash()
		s = d.open(t)
		require.GreaterOrEqual(t, s.Watermark(), high)
		want := map[jobid.ID]purge.Record{}
		for _, j := range append(before, tomb(5), tomb(7)) {
			want[j.ID] = j
		}
		delete(want, 6)
		got := map[jobid.ID]purge.Record{}
		for _, j := range tombs(t, s) {
			got[j.ID] = j
		}
		require.Equal(t, want, got)
		if appendErr == nil && readErr == nil {
			again, err := s.Read(5)
			require.NoError(t, err)
			require.Equal(t, string(j.Eventlog)+string(line("memo")), string(again.Eventlog))
		}
	})
}
