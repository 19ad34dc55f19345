package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
)

func TestATruncatedArchiveGivesTheGoodJobsThenTheError(t *testing.T) {
	whole := pack(t, join(job(1), job(2), job(3), []entry{{path: "resource/R", value: strings.Repeat("R", 512)}})...)
	var starts []int // of the first header of each job, of the last key, of the end
	r := bytes.NewReader(whole)
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err != nil {
			break
		}
		if strings.HasSuffix(h.Name, "/J") || h.Name == "resource/R" {
			starts = append(starts, len(whole)-r.Len()-512)
		}
	}
	end := len(whole) - 1024
	require.Len(t, starts, 4)

	for n := range len(whole) + 1 {
		// All places around the edges of blocks, and some amid them.
		if block := n % 512; block > 1 && block < 511 && n%97 != 0 {
			continue
		}
		a, err := archive.Read(bytes.NewReader(whole[:n]), archive.Limits{})
		if n >= end+512 && (n-end)%512 == 0 {
			require.NoError(t, err, "half an end mark is one")
			requireGood(t, a, 1, 2, 3)
			require.Empty(t, a.Failures)
			continue
		}
		require.ErrorIs(t, err, archive.ErrTruncated, n)
		require.LessOrEqual(t, offsetOf(t, err), int64(n))

		// The job whose header was read last is the one that may lack keys.
		seen, open := 0, 0
		for i, start := range starts {
			if n >= start+512 {
				seen, open = min(i+1, 3), i+1
			}
		}
		var good []jobid.ID
		for id := 1; id <= seen; id++ {
			if id != open {
				good = append(good, jobid.ID(id))
			}
		}
		requireGood(t, a, good...)
		var want []string
		if open >= 1 && open <= 3 {
			want = []string{fmt.Sprintf(`archive: "job/0000/0000/0000/%04d": reading stopped within this job`, open)}
			require.ErrorIs(t, a.Failures[0], archive.ErrIncomplete)
		}
		require.Equal(t, want, texts(a), n)
	}
}

func TestATruncatedCompressedArchiveGivesTheGoodJobsThenTheError(t *testing.T) {
	bz2, err := os.ReadFile("testdata/one.tar.bz2")
	require.NoError(t, err)
	for name, whole := range map[string][]byte{"gzip": zip(t, pack(t, join(job(1), job(2))...)), "bzip2": bz2} {
		for n := 0; n < len(whole); n += 3 {
			a, err := archive.Read(bytes.NewReader(whole[:n]), archive.Limits{})
			require.ErrorIs(t, err, archive.ErrTruncated, "%s: %d of %d: %v", name, n, len(whole), err)
			for _, j := range a.Jobs {
				require.NotEmpty(t, j.Jobspec)
			}
		}
	}
	// The checksum is the last: all is there but the proof.
	whole := zip(t, pack(t, join(job(1), job(2))...))
	a, err := archive.Read(bytes.NewReader(whole[:len(whole)-1]), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrTruncated)
	requireGood(t, a, 1, 2)
}

func TestADamagedArchiveGivesTheGoodJobsThenTheError(t *testing.T) {
	whole := pack(t, join(job(1), job(2))...)
	at := bytes.LastIndex(whole, []byte("0000/0002/J"))
	damaged := bytes.Clone(whole)
	damaged[at] ^= 1
	a, err := archive.Read(bytes.NewReader(damaged), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrFormat)
	require.NotErrorIs(t, err, archive.ErrTruncated)
	require.Len(t, a.Failures, 1, "the job before may go on in what is lost")
	require.ErrorIs(t, a.Failures[0], archive.ErrIncomplete)

	packed := zip(t, whole)
	packed[len(packed)-6] ^= 1
	a, err = archive.Read(bytes.NewReader(packed), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrFormat, "a wrong checksum is looked at")
	requireGood(t, a, 1, 2)

	bz2, err := os.ReadFile("testdata/one.tar.bz2")
	require.NoError(t, err)
	bz2[len(bz2)-3] ^= 1
	_, err = archive.Read(bytes.NewReader(bz2), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrFormat)
}

func TestDataBehindTheEndIsNotLostInSilence(t *testing.T) {
	one, two := pack(t, job(1)...), pack(t, job(2)...)
	a, err := archive.Read(bytes.NewReader(append(bytes.Clone(one), two...)), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrFormat)
	require.ErrorContains(t, err, "data after the end mark")
	requireGood(t, a, 1)
	require.Empty(t, a.Failures)

	a = read(t, append(bytes.Clone(one), make([]byte, 20000)...))
	requireGood(t, a, 1)
}

func TestDataThatIsNotAnArchiveIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"text":     strings.Repeat("once upon a time\n", 100),
		"eventlog": strings.Repeat(submitted, 20),
		"gzip":     "\x1f\x8b\x08" + strings.Repeat("\x00", 7) + strings.Repeat("\xff", 600),
	} {
		a, err := archive.Read(strings.NewReader(text), archive.Limits{})
		require.ErrorIs(t, err, archive.ErrFormat, name)
		require.Empty(t, a.Jobs)
		require.Empty(t, a.Failures)
	}
	for _, text := range []string{"", "x", "BZh", "\x1f\x8b\x08"} {
		_, err := archive.Read(strings.NewReader(text), archive.Limits{})
		require.ErrorIs(t, err, archive.ErrTruncated, "%q", text)
	}
}

func TestLimitsStopTheWholeOrOneKey(t *testing.T) {
	all := join(job(1), []entry{{path: "resource/R", value: strings.Repeat("R", 40)}}, job(2), []entry{{path: "job/bad/path/x", value: "x"}})
	b := pack(t, all...)
	held := int64(0)
	for _, e := range all {
		if !strings.HasSuffix(e.path, "/J") && !strings.HasSuffix(e.path, "/output") {
			held += int64(len(e.value))
		}
	}
	held += int64(len("resource/R")+len("job/bad/path/x")) - 1 // the bad path's value is not held
	const each = 256
	held += 4 * each

	exact := archive.Limits{Bytes: int64(len(b)), HeldBytes: held, FileBytes: int64(len(submitted + validated)), Entries: 4}
	a, err := archive.Read(bytes.NewReader(b), exact)
	require.NoError(t, err)
	requireGood(t, a, 1, 2)

	for _, test := range []struct {
		name string
		l    archive.Limits
		text string
		good []jobid.ID
	}{
		{"bytes", archive.Limits{Bytes: exact.Bytes - 1}, fmt.Sprintf(`archive: "job/bad/path/x": offset %d: limit exceeded: too many bytes`, len(b)-1), []jobid.ID{1, 2}},
		{"bytes, within the first job", archive.Limits{Bytes: 1500}, `archive: "job/0000/0000/0000/0001/J": offset 1500: limit exceeded: too many bytes`, nil},
		{"held bytes", archive.Limits{HeldBytes: held - 1}, `"job/bad/path/x": offset 13824: limit exceeded: too many bytes to keep`, []jobid.ID{1, 2}},
		{"held bytes, within the second job", archive.Limits{HeldBytes: held - 40 - each}, `"job/0000/0000/0000/0002/eventlog": offset 9728: limit exceeded: too many bytes to keep`, []jobid.ID{1}},
		{"entries", archive.Limits{Entries: 3}, `"job/bad/path/x": offset 13824: limit exceeded: too many jobs and keys`, []jobid.ID{1, 2}},
		{"entries, another key", archive.Limits{Entries: 1}, `"resource/R": offset 6656: limit exceeded: too many jobs and keys`, []jobid.ID{1}},
		{"entries, a job", archive.Limits{Entries: 2}, `"job/0000/0000/0000/0002/J": offset 7680: limit exceeded: too many jobs and keys`, []jobid.ID{1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := archive.Read(bytes.NewReader(b), test.l)
			require.ErrorIs(t, err, archive.ErrLimit)
			require.ErrorContains(t, err, test.text)
			requireGood(t, a, test.good...)
		})
	}

	t.Run("one key", func(t *testing.T) {
		long := append(job(3), entry{path: dir(3) + "guest/input", value: strings.Repeat("x", 4096)}, entry{path: "a", value: strings.Repeat("x", 4096)}, entry{path: "b", value: strings.Repeat("x", 4095)})
		long[1].value = strings.Repeat("x", 4096)
		a, err := archive.Read(bytes.NewReader(pack(t, join(job(1), long, job(2))...)), archive.Limits{FileBytes: 4095})
		require.NoError(t, err)
		requireGood(t, a, 1, 2)
		require.Equal(t, []string{
			`archive: "a": limit exceeded: value has too many bytes`,
			`archive: "job/0000/0000/0000/0003": limit exceeded: value has too many bytes`,
		}, texts(a))
		require.ErrorIs(t, a.Failures[0], archive.ErrLimit)
		require.Equal(t, []string{"b"}, keys(a))
	})
}

// zeros is a reader that never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestNothingUnpacksForEver(t *testing.T) {
	_, err := archive.Read(zeros{}, archive.Limits{Bytes: 1 << 20})
	require.ErrorIs(t, err, archive.ErrLimit)

	// 8 MB of a job's output are skipped, and read within the limit only.
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: dir(1) + "guest/output", Size: 8 << 20, Typeflag: tar.TypeReg}))
	for range 8 {
		_, err := w.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	bomb := zip(t, b.Bytes())
	require.Less(t, len(bomb), 20<<10)
	a, err := archive.Read(bytes.NewReader(bomb), archive.Limits{Bytes: 1 << 20})
	require.ErrorIs(t, err, archive.ErrLimit)
	require.Empty(t, a.Jobs)

	// A header may claim any size: memory is for what comes.
	claim := b.Bytes()[:512]
	header := bytes.Clone(pack(t, entry{path: "resource/R", value: "R"})[:512])
	copy(header[124:136], claim[124:136])
	sum := 0
	copy(header[148:156], "        ")
	for _, c := range header {
		sum += int(c)
	}
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = archive.Read(bytes.NewReader(header), archive.Limits{FileBytes: 1 << 40, HeldBytes: 1 << 40})
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, archive.ErrTruncated)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// offsetOf returns the offset that an error of Read tells.
func offsetOf(t require.TestingT, err error) int64 {
	m := regexp.MustCompile(`: offset (\d+)(?:: |$)`).FindStringSubmatch(err.Error())
	require.NotNil(t, m, "%v", err)
	n, convErr := strconv.ParseInt(m[1], 10, 64)
	require.NoError(t, convErr)
	return n
}

// A small file that unpacks to a large one may not take the time and memory of the large
// one: neither by what is skipped nor by what is kept.
func TestAFileThatUnpacksToFarMoreIsRefused(t *testing.T) {
	zipped := func(b []byte) []byte {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, err := w.Write(b)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return z.Bytes()
	}
	const size = 24 << 20
	plain := pack(t, append(job(1), entry{path: "kept", value: strings.Repeat("x", size)})...)
	for name, b := range map[string][]byte{
		"kept":    plain,
		"skipped": pack(t, append(job(1), entry{path: dir(1) + "guest/output", value: strings.Repeat("x", size)})...),
		"zeros":   append(pack(t, job(1)...), make([]byte, size)...),
	} {
		small := zipped(b)
		a, err := archive.Read(bytes.NewReader(small), archive.Limits{Bytes: 1 << 40, HeldBytes: 1 << 40})
		require.ErrorIs(t, err, archive.ErrLimit, name)
		requireGood(t, a, map[string][]jobid.ID{"zeros": {1}, "kept": {1}, "skipped": nil}[name]...)

		a, err = archive.Read(bytes.NewReader(small), archive.Limits{Ratio: 4000})
		require.NoError(t, err, name)
		requireGood(t, a, 1)
	}
	a := read(t, plain)
	requireGood(t, a, 1)
}

// A Ratio that means none is a limit of none: once the product with it wrapped.
func TestTheGreatestRatioIsNoLimit(t *testing.T) {
	b := zip(t, pack(t, entry{path: "a", value: strings.Repeat("x", 10<<20)}, entry{path: "b", value: strings.Repeat("y", 10<<20)}))
	for _, ratio := range []int64{math.MaxInt64, math.MaxInt64 / 2, 1 << 60} {
		a, err := archive.Read(bytes.NewReader(b), archive.Limits{Ratio: ratio})
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, keys(a))
	}
}
