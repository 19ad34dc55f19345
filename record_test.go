package joblife_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobspec"
)

func TestARecordIsOneLineOfRFC18AndBack(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.submit(jobspec.Job{Nodes: 2})
	s.step(joblife.StartQueue{Reason: "a \"test\"\n"})
	seen := make(map[joblife.RecordKind]bool)
	for _, r := range s.store {
		line, err := r.MarshalText()
		require.NoError(t, err)
		var back joblife.Record
		require.NoError(t, back.UnmarshalText(line), string(line))
		require.Equal(t, r, back, string(line))
		seen[r.Kind] = true
	}
	for r := range s.m.Snapshot() {
		line, err := r.MarshalText()
		require.NoError(t, err)
		var back joblife.Record
		require.NoError(t, back.UnmarshalText(line), string(line))
		require.Equal(t, r, back, string(line))
		seen[r.Kind] = true
	}
	require.Subset(t, seen, map[joblife.RecordKind]bool{
		joblife.RecordEvent: true, joblife.RecordJobspec: true, joblife.RecordR: true,
		joblife.RecordInactive: true, joblife.RecordWatermark: true, joblife.RecordQueue: true,
	})
	text, err := joblife.AppendRecords(nil, s.store)
	require.NoError(t, err)
	var read []joblife.Record
	for r, err := range joblife.ReadRecords(bytes.NewReader(text)) {
		require.NoError(t, err)
		read = append(read, r)
	}
	require.Equal(t, s.store, read)
	for _, err := range joblife.ReadRecords(bytes.NewReader(text[:len(text)-1])) {
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrTorn)
		}
	}

	var r joblife.Record
	for _, line := range []string{"", "x\n", `{"timestamp":1,"name":"submit"}`, `{"timestamp":1,"name":"event","context":{"job":7}}`} {
		require.Error(t, r.UnmarshalText([]byte(line)), line)
		require.Zero(t, r)
	}
}

// TestAFlippedBitOfARecordIsNoticed flips each bit of lines. What is read is what was
// written, or an error names the line.
func TestAFlippedBitOfARecordIsNoticed(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.submit(jobspec.Job{Nodes: 2})
	s.step(joblife.StartQueue{Reason: "a \"test\"\n"})
	list := append(s.store, joblife.Record{Time: 1.5, Job: 7, Kind: joblife.RecordUnlinked},
		joblife.Record{Time: 1e9 + 0.25, Job: 8, Kind: joblife.RecordTombstone, Data: []byte{}})
	told := 0
	for len(list) > 0 {
		n := min(3, len(list))
		text, err := joblife.AppendRecords(nil, list[:n])
		require.NoError(t, err)
		var want []joblife.Record
		for r, err := range joblife.ReadRecords(bytes.NewReader(text)) {
			require.NoError(t, err)
			want = append(want, r)
		}
		require.Len(t, want, n)
		for bit := range len(text) * 8 {
			text[bit/8] ^= 1 << (bit % 8)
			got := []joblife.Record{}
			var failed error
			for r, err := range joblife.ReadRecords(bytes.NewReader(text)) {
				if failed = err; err == nil {
					got = append(got, r)
				}
			}
			if failed != nil {
				told++
				require.ErrorContains(t, failed, "line ")
				require.Equal(t, want[:len(got)], got)
			} else {
				require.Equal(t, want, got, "%s", text)
			}
			text[bit/8] ^= 1 << (bit % 8)
		}
		list = list[n:]
	}
	require.Greater(t, told, 10_000)

	text, err := joblife.Record{Time: 1.5, Job: 1, Kind: joblife.RecordTombstone}.MarshalText()
	require.NoError(t, err)
	require.Equal(t, `{"timestamp":1.5,"name":"tombstone","context":{"job":"ƒ2","data":"","crc32c":"0c7f9876"}}`+"\n", string(text))

	repaired := `{"timestamp":1.5,"name":"tombstone","context":{"job":"ƒ2","data":""}}`
	require.NoError(t, new(joblife.Record).UnmarshalText([]byte(repaired)), "without check digits")
	err = new(joblife.Record).UnmarshalText([]byte(strings.Replace(repaired, `""`, `"","crc32c":"00000000"`, 1)))
	require.ErrorIs(t, err, joblife.ErrInvalid)
	require.ErrorContains(t, err, "tombstone record: offset 23: ")
}

// TestARecordHasTheBytesOfAnEntry compares what AppendText writes with AppendEntry.
func TestARecordHasTheBytesOfAnEntry(t *testing.T) {
	deep := func(n int) []byte {
		return []byte(strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n))
	}
	for _, r := range []joblife.Record{
		{Time: 1.5, Job: 7, Kind: joblife.RecordJobspec, Data: []byte(`{ "a" : [1, "ƒ\u0041"] }`)},
		{Time: 1.5, Job: 1<<63 - 1, Kind: joblife.RecordUnlinked},
		{Time: 1.5, Kind: joblife.RecordWatermark, Data: []byte("a \"b\"\n")},
		{Time: 1.5, Job: 7, Kind: joblife.RecordR, Data: deep(eventlog.DefaultMaxDepth - 3)},
	} {
		line, err := r.AppendText([]byte("before"))
		require.NoError(t, err)
		line = bytes.TrimPrefix(line, []byte("before"))
		e, err := eventlog.Parse(line)
		require.NoError(t, err)
		same, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: e.Timestamp, Name: e.Name, Context: e.Context})
		require.NoError(t, err)
		require.Equal(t, string(same), string(line))
	}
	for _, r := range []joblife.Record{
		{Time: 1.5, Job: 7, Kind: joblife.RecordR, Data: deep(eventlog.DefaultMaxDepth - 2)},
		{Time: 1.5, Job: 7, Kind: joblife.RecordR, Data: deep(eventlog.DefaultMaxDepth)},
		{Time: 1.5, Job: 7, Kind: joblife.RecordR, Data: []byte(`"` + strings.Repeat("x", eventlog.DefaultMaxLine) + `"`)},
		{Time: 1.5, Job: 7, Kind: joblife.RecordR, Data: []byte("{")},
		{Time: 1.5, Kind: joblife.RecordWatermark, Data: []byte("\xff")},
		{Kind: joblife.RecordWatermark, Data: []byte("a")},
	} {
		out, err := r.AppendText([]byte("before"))
		require.Error(t, err)
		require.Equal(t, "before", string(out))
		good := joblife.Record{Time: 1.5, Job: 7, Kind: joblife.RecordUnlinked}
		out, err = joblife.AppendRecords(append(make([]byte, 0, 4096), "before"...), []joblife.Record{good, r})
		require.Error(t, err)
		require.Equal(t, "before", string(out))
	}
}

// bothTexts returns the line of a record of a Manager, and that of one that anybody has
// made, which is checked.
func bothTexts(r joblife.Record) (fast, plain []byte, err error) {
	fast, err = r.MarshalText()
	plain, bad := joblife.Record{Time: r.Time, Job: r.Job, Kind: r.Kind, Data: r.Data}.MarshalText()
	return fast, plain, errors.Join(err, bad)
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"timestamp":1.5,"name":"event","context":{"job":"ƒ2","data":{"timestamp":1,"name":"submit"}}}`))
	f.Add([]byte(`{"timestamp":1.5,"name":"watermark","context":{"data":"watermark 0017e9fb8df16c2e"}}`))
	f.Add([]byte(`{"timestamp":1.5,"name":"watermark","context":{"data":""}}`))
	f.Add([]byte(`{"timestamp":1.5,"name":"unlinked","context":{"job":"ƒ2","data":""}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var r joblife.Record
		if r.UnmarshalText(line) != nil {
			return
		}
		text, err := r.MarshalText()
		require.NoError(t, err)
		fast, plain, err := bothTexts(r)
		require.NoError(t, err)
		require.Equal(t, string(plain), string(fast))
		var back joblife.Record
		require.NoError(t, back.UnmarshalText(text))
		again, err := back.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, again)
	})
}

// TestLinesAreThoseOfEventlog compares the short way to write a line with the plain one.
func TestLinesAreThoseOfEventlog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SampledFrom([]eventlog.Timestamp{1600000000, 1600000000.25, 1600000000.123457, 1, 1e-3, 253402300799, 1e300})
		names := rapid.OneOf(rapid.SampledFrom([]string{"submit", "prolog-start", "debug.x", "-", "A", "x_1", "a\"b", "\\", "ä", "\x01", "\x7f"}), rapid.StringN(1, 8, -1))
		contexts := rapid.SampledFrom([]string{"", `{}`, `{"a":1}`, `{ "a" : [ 1 ] }`, "{\"a\":\n1}", " {\"a\":1}", `{"a":1} `, "{\"a\":\t\"b\\n\"}\r"})
		var list []eventlog.Entry
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			e := eventlog.Entry{Timestamp: times.Draw(t, "time"), Name: names.Draw(t, "name")}
			if c := contexts.Draw(t, "context"); c != "" {
				e.Context = []byte(c)
			}
			if _, err := eventlog.AppendEntry(nil, e); err == nil {
				list = append(list, e)
			}
		}
		fast, plain, _ := joblife.Lines(list)
		require.Equal(t, string(plain), string(fast))
	})
	_, _, same := joblife.Lines([]eventlog.Entry{{Timestamp: 1, Name: "alloc"}, {Timestamp: 1, Name: "memo", Context: []byte("{\"a\":\n1}")}})
	require.Equal(t, []bool{true, false}, same)
}
