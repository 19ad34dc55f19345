package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
)

func TestATruncatedArchiveGivesTheGoodJobsThenTheError(t *testing.T) {
	whole := pack(t, join(job(1), job(2), job(3), []entry{{path: "resource/R", value: strings.Repeat("R", 512)}})...)
	var starts []int // of the first header of each job, and of the last key
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
		a, err := walk(bytes.NewReader(whole[:n]), archive.Limits{})
		if n >= end+512 && (n-end)%512 == 0 {
			require.NoError(t, err, "half an end mark is one")
			requireGood(t, a, 1, 2, 3)
			require.Empty(t, a.Failures)
			continue
		}
		require.ErrorIs(t, err, archive.ErrTruncated, n)
		require.LessOrEqual(t, offsetOf(t, err), int64(n))

		// The job whose header was read last is the one that may lack keys.
		open := 0
		for i, start := range starts {
			if n >= start+512 {
				open = i + 1
			}
		}
		requireGood(t, a, []jobid.ID{1, 2, 3}[:max(open-1, 0)]...)
		var want []string
		if open >= 1 && open <= 3 {
			want = []string{fmt.Sprintf(`archive: job %v: "job/0000/0000/0000/%04d": reading stopped within this job`, jobid.ID(open), open)}
			require.ErrorIs(t, a.Failures[0], archive.ErrIncomplete)
		}
		require.Equal(t, want, texts(a), n)
	}
}

func TestATruncatedCompressedArchiveGivesTheGoodJobsThenTheError(t *testing.T) {
	bz2, err := os.ReadFile("testdata/one.tar.bz2")
	require.NoError(t, err)
	zipped := zip(t, pack(t, join(job(1), job(2))...))
	for name, whole := range map[string][]byte{"gzip": zipped, "bzip2": bz2} {
		for n := 0; n < len(whole); n += 3 {
			_, err := walk(bytes.NewReader(whole[:n]), archive.Limits{})
			require.ErrorIs(t, err, archive.ErrTruncated, "%s: %d of %d: %v", name, n, len(whole), err)
		}
	}
	// The checksum is the last: all is there but the proof.
	a, err := walk(bytes.NewReader(zipped[:len(zipped)-1]), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrTruncated)
	requireGood(t, a, 1, 2)
}

func TestADamagedArchiveGivesTheGoodJobsThenTheError(t *testing.T) {
	whole := pack(t, join(job(1), job(2))...)
	damaged := bytes.Clone(whole)
	damaged[bytes.LastIndex(whole, []byte("0000/0002/J"))] ^= 1
	a, err := walk(bytes.NewReader(damaged), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrFormat)
	require.NotErrorIs(t, err, archive.ErrTruncated)
	require.Len(t, a.Failures, 1, "the job before may go on in what is lost")
	require.ErrorIs(t, a.Failures[0], archive.ErrIncomplete)

	packed := zip(t, whole)
	packed[len(packed)-6] ^= 1
	a, err = walk(bytes.NewReader(packed), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrFormat, "a wrong checksum is looked at")
	requireGood(t, a, 1, 2)

	bz2, err := os.ReadFile("testdata/one.tar.bz2")
	require.NoError(t, err)
	bz2[len(bz2)-3] ^= 1
	_, err = walk(bytes.NewReader(bz2), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrFormat)
}

func TestDataBehindTheEndIsNotLostInSilence(t *testing.T) {
	one, two := pack(t, job(1)...), pack(t, job(2)...)
	a, err := walk(bytes.NewReader(append(bytes.Clone(one), two...)), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrFormat)
	require.ErrorContains(t, err, "data after the end mark")
	requireGood(t, a, 1)
	require.Empty(t, a.Failures)

	requireGood(t, read(t, append(bytes.Clone(one), make([]byte, 20000)...)), 1)
}

func TestDataThatIsNotAnArchiveIsRefused(t *testing.T) {
	for text, category := range map[string]error{
		strings.Repeat("once upon a time\n", 100):                                archive.ErrFormat,
		strings.Repeat(submitted, 20):                                            archive.ErrFormat,
		"\x1f\x8b\x08" + strings.Repeat("\x00", 7) + strings.Repeat("\xff", 600): archive.ErrFormat,
		"": archive.ErrTruncated, "x": archive.ErrTruncated, "BZh": archive.ErrTruncated, "\x1f\x8b\x08": archive.ErrTruncated,
	} {
		a, err := walk(strings.NewReader(text), archive.Limits{})
		require.ErrorIs(t, err, category, "%q", text)
		require.Empty(t, a.Jobs)
		require.Empty(t, a.Failures)
	}
}

func TestLimitsStopTheWhole(t *testing.T) {
	b := pack(t, join(job(1), []entry{{path: "resource/R", value: strings.Repeat("R", 4000)}}, job(2), []entry{{path: "job/bad/path/x", value: "x"}})...)
	exact := archive.Limits{Bytes: int64(len(b)), HeldBytes: max(kept(1), 256+int64(len("job/bad/path/x"))), FileBytes: int64(len(submitted + validated)), Entries: 3}
	a, err := walk(bytes.NewReader(b), exact)
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
		{"held bytes", archive.Limits{HeldBytes: exact.HeldBytes - 1}, `"job/0000/0000/0000/0001/jobspec": offset 5632: limit exceeded: too many bytes to keep`, nil},
		{"held bytes, a path", archive.Limits{HeldBytes: 256}, `"job/0000/0000/0000/0001/R": offset 1536: limit exceeded: too many bytes to keep`, nil},
		{"entries", archive.Limits{Entries: 2}, `"job/bad/path/x": offset 17408: limit exceeded: too many jobs and keys`, []jobid.ID{1, 2}},
		{"entries, a job", archive.Limits{Entries: 1}, `"job/0000/0000/0000/0002/J": offset 11264: limit exceeded: too many jobs and keys`, []jobid.ID{1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := walk(bytes.NewReader(b), test.l)
			require.ErrorIs(t, err, archive.ErrLimit)
			require.ErrorContains(t, err, test.text)
			requireGood(t, a, test.good...)
		})
	}
	// A job counts wherever it comes.
	a, err = walk(bytes.NewReader(pack(t, join(job(3), job(1), job(2))...)), archive.Limits{Entries: 2})
	require.ErrorIs(t, err, archive.ErrLimit)
	requireGood(t, a, 3, 1)
	_, err = walk(bytes.NewReader(pack(t, entry{path: "job/bad/path/x"}, entry{path: "job/bad/path/y/z/"})), archive.Limits{Entries: 1})
	require.ErrorIs(t, err, archive.ErrLimit, "a bad path counts")
	for n, category := range map[int64]error{14 + 256: nil, 14 + 255: archive.ErrLimit} {
		_, err := walk(bytes.NewReader(pack(t, entry{path: "job/bad/path/x"})), archive.Limits{HeldBytes: n})
		require.ErrorIs(t, err, category)
	}
	// A failed job counts to the end, and is listed even if it is one too many.
	again := func(id jobid.ID) entry { return entry{path: dir(id) + "R", value: "x"} }
	for text, list := range map[string][]entry{
		"no eventlog":  {{path: dir(1)}, {path: dir(2)}, {path: dir(3)}},
		"not together": append(join(job(1), job(2), job(3)), again(1), again(2), again(3)),
	} {
		limits := archive.Limits{HeldBytes: 3 * (256 + int64(len("job/0000/0000/0000/0001")))}
		a, err := walk(bytes.NewReader(pack(t, list...)), limits)
		require.NoError(t, err, text)
		require.Len(t, a.Failures, 3)
		limits.HeldBytes--
		a, err = walk(bytes.NewReader(pack(t, list...)), limits)
		require.ErrorIs(t, err, archive.ErrLimit, text)
		require.Len(t, a.Failures, 3)
		require.ErrorContains(t, a.Failures[2], text)
	}
}

// zeros is a reader that never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestNothingUnpacksForEver(t *testing.T) {
	_, err := walk(zeros{}, archive.Limits{Bytes: 1 << 20})
	require.ErrorIs(t, err, archive.ErrLimit)

	// 8 MB of a job's output are skipped, and read within the limit only.
	output := pack(t, entry{path: dir(1) + "guest/output", value: strings.Repeat("\x00", 8<<20)})
	bomb := zip(t, output)
	require.Less(t, len(bomb), 20<<10)
	a, err := walk(bytes.NewReader(bomb), archive.Limits{Bytes: 1 << 20})
	require.ErrorIs(t, err, archive.ErrLimit)
	require.Empty(t, a.Jobs)

	// A header may claim any size: memory is for what comes.
	header := bytes.Clone(pack(t, entry{path: dir(1) + "R", value: "R"})[:512])
	copy(header[124:136], output[124:136])
	sum := 0
	copy(header[148:156], "        ")
	for _, c := range header {
		sum += int(c)
	}
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = walk(bytes.NewReader(header), archive.Limits{FileBytes: 1 << 40, HeldBytes: 1 << 40})
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, archive.ErrTruncated)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// offsetOf returns the offset that an error of Walk tells.
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
	const size = 24 << 20
	long := strings.Repeat("x", size)
	for name, tt := range map[string]struct {
		packed []byte
		good   []jobid.ID
	}{
		"kept":    {pack(t, append(job(1), entry{path: dir(2) + "R", value: long})...), []jobid.ID{1}},
		"skipped": {pack(t, append(job(1), entry{path: dir(1) + "guest/output", value: long})...), nil},
		"zeros":   {append(pack(t, job(1)...), make([]byte, size)...), []jobid.ID{1}},
	} {
		small := zip(t, tt.packed)
		a, err := walk(bytes.NewReader(small), archive.Limits{Bytes: 1 << 40, HeldBytes: 1 << 40})
		require.ErrorIs(t, err, archive.ErrLimit, name)
		requireGood(t, a, tt.good...)
		// The greatest Ratio once wrapped in the product with the size of the input.
		for _, ratio := range []int64{4000, 1 << 60, math.MaxInt64 / 2, math.MaxInt64} {
			a, err = walk(bytes.NewReader(small), archive.Limits{Ratio: ratio})
			require.NoError(t, err, name)
			requireGood(t, a, 1)
		}
		requireGood(t, read(t, tt.packed), 1)
	}
}

func TestABrokenReaderIsToldFromABrokenArchive(t *testing.T) {
	b := pack(t, join(job(1), job(2))...)
	broken := errors.New("the network is down")
	for _, packed := range [][]byte{b, zip(t, b)} {
		for _, n := range []int{0, 5, len(packed) / 2, len(packed) - 1, len(packed)} {
			_, err := walk(io.MultiReader(bytes.NewReader(packed[:n]), iotest.ErrReader(broken)), archive.Limits{})
			require.NotErrorIs(t, err, archive.ErrTruncated, n)
			require.NotErrorIs(t, err, archive.ErrFormat, n)
			require.ErrorIs(t, err, broken)
		}
	}
}

func TestFailuresAndErrorsAreOneLineAndShort(t *testing.T) {
	evil := "job/\x1b[31m\n" + strings.Repeat("x", 90) + "/"
	a := read(t, pack(t, entry{path: evil}, entry{path: evil + "a/b/c/d"}))
	require.Len(t, a.Failures, 1)
	require.True(t, strings.HasPrefix(a.Failures[0].Error(), `archive: "job/\x1b[31m\n`), a.Failures[0].Error())
	_, err := walk(bytes.NewReader(pack(t, entry{path: evil + "a/b/c/d", value: "x"})[:513]), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrTruncated)
	for _, text := range []string{a.Failures[0].Error(), err.Error()} {
		require.Less(t, len(text), 250)
		require.NotContains(t, text, "\n")
		require.NotContains(t, text, "\x1b")
	}
}
