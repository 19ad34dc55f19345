package jobid_test

import (
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

// RFC 19, "Implementation": 1024 ids per millisecond.
func TestRFC19AMillisecondHas1024IDsOfAGenerator(t *testing.T) {
	g := newGenerator(t, 3)
	for seq := range 1024 {
		id, err := g.Next(at(5))
		require.NoError(t, err)
		require.Equal(t, jobid.ID(5<<24|3<<10|seq), id)
	}
	_, err := g.Next(at(5))
	require.ErrorIs(t, err, jobid.ErrExhausted)
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

// RFC 19, "Implementation": the timestamp is good for 35 years.
func TestRFC19TheLastMillisecondIs35YearsAfterTheEpoch(t *testing.T) {
	g := newGenerator(t, 0)
	id, err := g.Next(at(1<<40 - 1))
	require.NoError(t, err)
	require.Equal(t, uint64(1<<40-1), id.Timestamp())
	_, err = g.Next(at(1 << 40))
	require.ErrorContains(t, err, outOfRange)
	require.InDelta(t, 34.8, at(1<<40).Sub(epoch).Hours()/24/365.25, 0.1)
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
		if c != '.' && c != '-' && !containsByte(alphabet, byte(c)) {
			_, err := jobid.Parse(in)
			require.ErrorContains(t, err, syntaxError, "%q", in)
		}
	}
	for _, example := range []string{"ƒZemgA8Bzf", "ƒ278oEf7zGf"} {
		require.Equal(t, example, parse(t, example).String())
	}
}

func containsByte(s string, c byte) bool {
	for i := range len(s) {
		if s[i] == c {
			return true
		}
	}
	return false
}

// RFC 19, "FLUID Hexadecimal (hex) Encoding", its examples.
func TestRFC19HexHasThe0xPrefix(t *testing.T) {
	for _, example := range []string{"0x17e9fb8df16c2e", "0xedaf97d000000"} {
		require.Equal(t, example, parse(t, example).Format(jobid.FormatHex))
	}
}

// RFC 19, "FLUID Dotted-Hexadecimal (dothex) Encoding", its examples.
func TestRFC19DothexHasADotAfterEachFourDigits(t *testing.T) {
	for _, example := range []string{"0017.e9fb.8df1.6c2e", "000e.daf9.7d00.0000"} {
		require.Equal(t, example, parse(t, example).Format(jobid.FormatDotHex))
	}
}

// RFC 19, "Representation": every example of a section is the same id.
func TestRFC19ExamplesOfOneIDAgree(t *testing.T) {
	for _, in := range []string{"6731191091817518", "ƒuZZybuNNy", "fuZZybuNNy", "0x17e9fb8df16c2e", "0017.e9fb.8df1.6c2e"} {
		require.Equal(t, jobid.ID(6731191091817518), parse(t, in))
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

// RFC 19, "Decoding Alternate FLUID Representations": leading and trailing white
// space SHALL be ignored.
func TestRFC19WhiteSpaceOnBothSidesIsIgnored(t *testing.T) {
	for _, f := range formats {
		for _, space := range []string{" ", "\t", "\n", "\v", "\f", "\r", "  \n"} {
			text := jobid.ID(6731191091817518).Format(f)
			require.Equal(t, jobid.ID(6731191091817518), parse(t, space+text), "%v", f)
			require.Equal(t, jobid.ID(6731191091817518), parse(t, text+space), "%v", f)
		}
	}
}

// RFC 19, "Background": loosely ordered. A later millisecond's id is greater,
// whichever generators made the two.
func TestRFC19IDsOfLaterMillisecondsAreGreater(t *testing.T) {
	high, low := newGenerator(t, 16383), newGenerator(t, 0)
	a, err := high.Next(at(7))
	require.NoError(t, err)
	b, err := low.Next(at(8))
	require.NoError(t, err)
	require.Less(t, a, b)
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
