package jobid_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/stretchr/testify/require"
)

// RFC 19, "Implementation": 40 bits of time in milliseconds, 14 bits of generator
// id, 10 bits of sequence, most significant first.
func TestRFC19FieldsAre40And14And10Bits(t *testing.T) {
	for _, tt := range []struct {
		id  jobid.ID
		ms  uint64
		gen uint16
		seq uint16
	}{
		{0, 0, 0, 0},
		{1, 0, 0, 1},
		{1023, 0, 0, 1023},
		{1024, 0, 1, 0},
		{1<<24 - 1, 0, 16383, 1023},
		{1 << 24, 1, 0, 0},
		{1<<64 - 1, 1<<40 - 1, 16383, 1023},
		{0x0123456789_abcdef, 0x0123456789, 0xabcdef >> 10, 0xabcdef & 0x3ff},
	} {
		require.Equal(t, tt.ms, tt.id.Timestamp(), "%x", uint64(tt.id))
		require.Equal(t, tt.gen, tt.id.Generator(), "%x", uint64(tt.id))
		require.Equal(t, tt.seq, tt.id.Sequence(), "%x", uint64(tt.id))
	}
}

// RFC 19, "Implementation": 1024 ids per millisecond. The next one has ids again.
func TestRFC19AMillisecondHas1024IDsOfAGenerator(t *testing.T) {
	g := newGenerator(t, 2)
	for seq := range 1024 {
		id, err := g.Next(at(9))
		require.NoError(t, err)
		require.Equal(t, jobid.ID(9<<24|2<<10|seq), id)
	}
	last := g.Last()
	for range 3 {
		_, err := g.Next(at(9).Add(999 * time.Microsecond))
		require.EqualError(t, err, "jobid: no id left in this millisecond: generator 2 at 9 ms, its last id is of 9 ms")
		require.ErrorIs(t, err, jobid.ErrExhausted)
		require.Equal(t, last, g.Last())
	}
	id, err := g.Next(at(10))
	require.NoError(t, err)
	require.Equal(t, jobid.ID(10<<24|2<<10), id)
}

// RFC 19, "Implementation": the timestamp is good for 35 years.
func TestRFC19TheLastMillisecondIs35YearsAfterTheEpoch(t *testing.T) {
	g := newGenerator(t, 1)
	for _, now := range []time.Time{at(1 << 40), at(1<<40 + 1), epoch.AddDate(500, 0, 0), time.Unix(math.MaxInt64/2, 0)} {
		id, err := g.Next(now)
		require.ErrorContains(t, err, outOfRange, "%v", now)
		require.Zero(t, id)
		require.Zero(t, g.Last())
	}
	id, err := g.Next(at(1 << 40).Add(-time.Nanosecond))
	require.NoError(t, err)
	require.Equal(t, uint64(1<<40-1), id.Timestamp())
	require.InDelta(t, 34.8, at(1<<40).Sub(epoch).Hours()/24/365.25, 0.1)
}

// RFC 19, "Implementation": up to 16K generators.
func TestRFC19GeneratorIDsHave14Bits(t *testing.T) {
	g := newGenerator(t, 16383)
	id, err := g.Next(at(0))
	require.NoError(t, err)
	require.EqualValues(t, 16383, id.Generator())
	_, err = jobid.NewGenerator(16384, epoch)
	require.ErrorContains(t, err, outOfRange)
}

// RFC 19, "FLUID base58 (F58) Encoding", its examples and its alphabet.
func TestRFC19F58IsBase58WithAPrefix(t *testing.T) {
	require.Equal(t, "ƒuZZybuNNy", jobid.ID(6731191091817518).String())
	require.Equal(t, "\u0192", "ƒ")
	const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	for i, c := range alphabet {
		require.Equal(t, "ƒ"+string(c), jobid.ID(i).String())
		require.Equal(t, jobid.ID(i), parse(t, "ƒ"+string(c)))
		require.Equal(t, jobid.ID(i), parse(t, "f"+string(c)))
	}
	for c := range 256 {
		in := "f" + string([]byte{byte(c)})
		if c != '.' && c != '-' && !strings.Contains(alphabet, in[1:]) {
			_, err := jobid.Parse(in)
			require.ErrorContains(t, err, syntaxError, "%q", in)
		}
	}
	for _, example := range []string{"ƒZemgA8Bzf", "ƒ278oEf7zGf"} {
		require.Equal(t, example, parse(t, example).String())
	}
}

// RFC 19, "FLUID Hexadecimal (hex) Encoding", "FLUID Dotted-Hexadecimal (dothex) Encoding"
// and "Representation", their examples.
func TestRFC19ExamplesOfOneIDAgree(t *testing.T) {
	for id, forms := range map[jobid.ID][2]string{
		6731191091817518: {"0x17e9fb8df16c2e", "0017.e9fb.8df1.6c2e"},
		0xedaf97d000000:  {"0xedaf97d000000", "000e.daf9.7d00.0000"},
	} {
		require.Equal(t, forms, [2]string{id.Format(jobid.FormatHex), id.Format(jobid.FormatDotHex)})
		for _, f := range formats {
			require.Equal(t, id, parse(t, id.Format(f)))
		}
	}
}

// RFC 19, "FLUID Mnemonic (words) Encoding" and "FLUID Emoji Encoding": known
// and refused, in the RFC's examples.
func TestRFC19WordsAndEmojiAreNamedAsUnsupported(t *testing.T) {
	for _, in := range []string{
		"reform-remote-galileo--heart-package-academy", "random-idea-yoyo--sugar-printer-academy",
		"🚹💂🙌😳💱🏃", "😄😹🎇📥🏧🙉🔞", "🚹💂🈳💰🎩🏃",
	} {
		_, err := jobid.Parse(in)
		require.ErrorContains(t, err, unsupported, in)
	}
}

// RFC 19, "Decoding Alternate FLUID Representations": the rules apply in their
// order. Each text here would be valid by a later rule.
func TestRFC19AFormIsFoundByTheFirstRuleThatHolds(t *testing.T) {
	require.Equal(t, jobid.ID(0xf<<48|0xf<<32|0xf<<16|0xf), parse(t, "f.f.f.f")) // dothex before F58
	_, err := jobid.Parse("face-book")                                           // words before F58
	require.ErrorContains(t, err, unsupported)
	_, err = jobid.Parse("a-b.c") // dothex before words
	require.ErrorContains(t, err, syntaxError)
	_, err = jobid.Parse("😃.") // dothex before emoji
	require.ErrorContains(t, err, syntaxError)
}

func parse(t testing.TB, s string) jobid.ID {
	t.Helper()
	id, err := jobid.Parse(s)
	require.NoError(t, err)
	return id
}

// epoch is the epoch of all generators in tests; at tells the time some
// milliseconds after it.
var epoch = time.Date(2024, 2, 29, 12, 0, 0, 123_456_789, time.UTC)

func at(ms int64) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

func newGenerator(t testing.TB, id uint16) *jobid.Generator {
	t.Helper()
	g, err := jobid.NewGenerator(id, epoch)
	require.NoError(t, err)
	return g
}
