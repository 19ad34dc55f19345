package jobid_test

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/jobstate/jobid"
)

var errPlain = errors.New("not F58")

// plainParse is F58 as one would read it: the place of each digit is looked for in
// the alphabet.
func plainParse(s string) (jobid.ID, error) {
	digits, ok := strings.CutPrefix(s, "ƒ")
	if !ok {
		digits, ok = strings.CutPrefix(s, "f")
	}
	if !ok || digits == "" || len(digits) > 12 {
		return 0, errPlain
	}
	v := uint64(0)
	for i := range len(digits) {
		d := strings.IndexByte(naiveAlphabet, digits[i])
		hi, lo := bits.Mul64(v, 58)
		sum, carry := bits.Add64(lo, uint64(d), 0)
		if d < 0 || hi != 0 || carry != 0 {
			return 0, errPlain
		}
		v = sum
	}
	return jobid.ID(v), nil
}

// plainAppend is F58 as one would print it: a division for each digit.
func plainAppend(dst []byte, id jobid.ID) []byte {
	dst = append(dst, "ƒ"...)
	start := len(dst)
	for v := uint64(id); ; v /= 58 {
		dst = append(dst, naiveAlphabet[v%58])
		if v < 58 {
			slices.Reverse(dst[start:])
			return dst
		}
	}
}

func TestF58AgreesWithThePlainVersion(t *testing.T) {
	check := func(t fataler, id jobid.ID) {
		text := string(plainAppend(nil, id))
		require.Equal(t, text, id.String())
		for _, s := range []string{text, "f" + strings.TrimPrefix(text, "ƒ")} {
			plain, plainErr := plainParse(s)
			got, err := jobid.Parse(s)
			require.NoError(t, plainErr)
			require.NoError(t, err)
			require.Equal(t, id, plain)
			require.Equal(t, id, got)
		}
	}
	check(t, math.MaxUint64)
	power := jobid.ID(1)
	for range 11 {
		check(t, power-1)
		check(t, power)
		power *= 58
	}
	rapid.Check(t, func(t *rapid.T) { check(t, jobid.ID(anyID.Draw(t, "id"))) })
}

// BenchmarkRatio reads and prints the ids of many jobs, whose digits a processor
// cannot predict, with this package and in turns as one would otherwise. It reports
// how many times faster this package is: the shortest turn of either, for on a busy
// host the others measure what else runs there.
func BenchmarkRatio(b *testing.B) {
	const n = 4096
	random := rand.New(rand.NewPCG(1, 2))
	ids, f58, dec := make([]jobid.ID, n), make([]string, n), make([]string, n)
	for i := range ids {
		ids[i] = jobid.ID(random.Uint64())
		f58[i], dec[i] = ids[i].String(), ids[i].Format(jobid.FormatDec)
	}
	buf := make([]byte, 0, 64)
	read := func(texts []string, parse func(string) (jobid.ID, error)) func() {
		return func() {
			for i, text := range texts {
				if id, err := parse(text); id != ids[i] || err != nil {
					b.Fatal(id, err)
				}
			}
		}
	}
	print := func(appendID func([]byte, jobid.ID) []byte) func() {
		return func() {
			for _, id := range ids {
				buf = appendID(buf[:0], id)
			}
		}
	}
	decimal := func(s string) (jobid.ID, error) {
		v, err := strconv.ParseUint(s, 10, 64)
		return jobid.ID(v), err
	}
	ours := func(dst []byte, id jobid.ID) []byte { return id.AppendFormat(dst, jobid.FormatF58) }
	for _, c := range []struct {
		name         string
		ours, theirs func()
	}{
		{"parse f58", read(f58, jobid.Parse), read(f58, plainParse)},
		{"parse f58 beside a decimal of strconv", read(f58, jobid.Parse), read(dec, decimal)},
		{"print f58", print(ours), print(plainAppend)},
	} {
		b.Run(c.name, func(b *testing.B) {
			best := [2]time.Duration{time.Hour, time.Hour}
			for b.Loop() {
				for i, f := range []func(){c.ours, c.theirs} {
					before := b.Elapsed()
					f()
					best[i] = min(best[i], b.Elapsed()-before)
				}
			}
			b.ReportMetric(float64(best[1])/float64(best[0]), "times-plain")
			b.ReportMetric(float64(best[0])/n, "ns/id")
		})
	}
}
