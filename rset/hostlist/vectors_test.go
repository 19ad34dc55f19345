package hostlist_test

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/rset/hostlist"
)

// Where this package differs from the reference, by reason. The package
// documentation names them all.
const (
	spaces       = "white space separates, as a comma does"
	laxBrackets  = "what stands behind the first pair of brackets may have brackets"
	laxIDs       = "an id has a sign, a space or other text beside it, or is missing"
	laxBytes     = "bytes that are not printable ASCII are let in"
	longNames    = "names are as long as you like, and cut when printed"
	rangeCaps    = "2^20 hosts in a range and 10240 ranges in brackets are the most"
	hugeIDs      = "ids from 2^64 on are dropped or become 2^64 - 1"
	cutNames     = "a longer id is cut where a suffix follows it"
	digitsBefore = "digits before a bracket are not part of the id"
	digitsBehind = "digits at the end of a suffix are not an id"
	longDigits   = "an id has as many digits as you like"
	farApart     = "ids that differ by 2^31 and more are in the wrong order"
	mixedLengths = "ranges are sorted, not hosts"
	unstable     = "the answer depends on the C library's sort"
)

var (
	hasDigitsBefore = regexp.MustCompile(`[0-9]\[`)
	hasDigitsBehind = regexp.MustCompile(`\][^,\[]*[0-9](,|$)`)
	hasLongDigits   = regexp.MustCompile(`[0-9]{19}`)
	hasLargeID      = regexp.MustCompile(`[1-9][0-9]{9}`)
	hasHugeID       = regexp.MustCompile(`[1-9][0-9]{19}`)
)

// commas returns the text with a comma for each white space that separates.
func commas(text string) string {
	depth := 0
	return strings.Map(func(c rune) rune {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		case ' ', '\t':
			if depth == 0 {
				return ','
			}
		}
		return c
	}, text)
}

// refusal returns why the reference takes a text that this package refuses.
func refusal(t *testing.T, text string, err error) string {
	t.Helper()
	if m := syntaxText.FindStringSubmatch(err.Error()); m != nil {
		offset, _ := strconv.Atoi(m[1])
		has := func(cause string) bool { return strings.Contains(err.Error(), ": "+cause+" in ") }
		switch {
		case has("second bracket") || has("bracket is not opened"):
			return laxBrackets
		case strings.Contains(text[:offset], "[") && (has("empty element") || has("unexpected byte")):
			return laxIDs
		case has("unexpected byte") && (text[offset] < '!' || text[offset] > '~'):
			return laxBytes
		}
	}
	if errors.Is(err, hostlist.ErrLimit) && strings.Contains(err.Error(), " bytes of a name,") {
		return longNames
	}
	t.Errorf("%q: no reason is known why it is refused: %v", text, err)
	return ""
}

func TestEveryTextIsReadAsTheReferenceReadsIt(t *testing.T) {
	type vector struct {
		In        string   `json:"in"`
		OK        bool     `json:"ok"`
		Canon     string   `json:"canon"`
		Count     int      `json:"count"`
		Hosts     []string `json:"hosts"`
		Last      string   `json:"last"`
		Uniq      *string  `json:"uniq"`
		UniqCount int      `json:"uniq_count"`
		Unstable  []string `json:"unstable"`
	}
	differences := refdata.ExpectDifferences(t, refdata.Of(map[string]int{
		spaces: 165, laxBrackets: 33, laxIDs: 34, laxBytes: 8, longNames: 7, rangeCaps: 2, hugeIDs: 6, cutNames: 1,
		digitsBefore: 114, digitsBehind: 26, longDigits: 1,
		"order: " + digitsBefore: 113, "order: " + digitsBehind: 21, "order: " + longDigits: 1,
		"order: " + farApart: 2, "order: " + mixedLengths: 26,
	}, map[string]int{
		spaces: 259, laxBrackets: 55, laxIDs: 44, laxBytes: 8, longNames: 14, rangeCaps: 3, hugeIDs: 6, cutNames: 1,
		digitsBefore: 146, digitsBehind: 57, longDigits: 1,
		"order: " + digitsBefore: 143, "order: " + digitsBehind: 38, "order: " + longDigits: 1,
		"order: " + farApart: 2, "order: " + mixedLengths: 33,
		unstable: 1,
	}))
	accepted, refused, sorted := 0, 0, 0
	for _, v := range refdata.Lines[vector](t, "vectors/hostlist.jsonl.gz", refdata.Of(1953, 2368)) {
		text := v.In
		if _, err := hostlist.Parse(text); err != nil && v.OK && commas(text) != text {
			differences.Note(spaces)
			text = commas(text)
		}
		l, err := hostlist.Parse(text)
		switch {
		case err != nil && !v.OK:
			refused++
			continue
		case err != nil:
			differences.Note(refusal(t, text, err))
			continue
		case !v.OK:
			differences.Note(rangeCaps)
			continue
		case hasHugeID.MatchString(text) && (l.Len() != v.Count || l.String() != v.Canon && !parse(t, v.Canon).Equal(l)):
			differences.Note(hugeIDs)
			continue
		case hasLongDigits.MatchString(text) && l.String() != v.Canon && !parse(t, v.Canon).Equal(l):
			differences.Note(cutNames)
			continue
		}
		accepted++
		require.NoError(t, l.Check())
		require.Equal(t, v.Count, l.Len(), text)
		for i, want := range v.Hosts {
			name, ok := l.Nth(i)
			require.True(t, ok)
			require.Equal(t, want, name)
		}
		if last, ok := l.Nth(l.Len() - 1); ok {
			require.Equal(t, v.Last, last)
		}

		// The reference's text is read as the same list, also where it is not
		// canonical here.
		require.True(t, parse(t, v.Canon).Equal(l), text)
		ambiguous := ""
		switch {
		case hasDigitsBefore.MatchString(text):
			ambiguous = digitsBefore
		case hasDigitsBehind.MatchString(text):
			ambiguous = digitsBehind
		case hasLongDigits.MatchString(text):
			ambiguous = longDigits
		}
		if l.String() != v.Canon {
			differences.Note(ambiguous)
		}

		// The same goes for order: what the reference sorted is, sorted here, the same
		// list, so that no host is lost or added.
		got := l.Clone()
		got.Uniq()
		require.NoError(t, got.Check())
		if strings.Contains(strings.Join(v.Unstable, ","), "uniq") {
			differences.Note(unstable)
			continue
		}
		require.NotNil(t, v.Uniq)
		sorted++
		switch {
		case got.String() == *v.Uniq:
			require.Equal(t, v.UniqCount, got.Len())
		case ambiguous != "":
			differences.Note("order: " + ambiguous)
		case hasLargeID.MatchString(text):
			differences.Note("order: " + farApart)
			continue
		default:
			differences.Note("order: " + mixedLengths)
		}
		theirs := parse(t, *v.Uniq)
		theirs.Uniq()
		require.True(t, theirs.Equal(got), "%q: %s, not %s", text, got, *v.Uniq)
	}
	require.Equal(t, refdata.Of(1511, 1886), accepted)
	require.Equal(t, 351, refused)
	require.Equal(t, refdata.Of(1511, 1885), sorted)
}

func TestEveryOperationAnswersAsTheReference(t *testing.T) {
	type vector struct {
		A           string   `json:"a"`
		B           string   `json:"b"`
		Append      string   `json:"append"`
		Appended    int      `json:"appended"`
		AppendCount int      `json:"append_count"`
		AppendList  string   `json:"append_list"`
		Copy        string   `json:"copy"`
		Find        [][2]any `json:"find"`
	}
	differences := refdata.ExpectDifferences(t, refdata.Of(map[string]int{
		laxBrackets:             8,
		"copy: " + digitsBefore: 36, "append: " + digitsBefore: 41, "append list: " + digitsBefore: 41,
		"copy: " + digitsBehind: 7, "append: " + digitsBehind: 11, "append list: " + digitsBehind: 11,
	}, map[string]int{
		laxBrackets:             27,
		"copy: " + digitsBefore: 53, "append: " + digitsBefore: 63, "append list: " + digitsBefore: 63,
		"copy: " + digitsBehind: 23, "append: " + digitsBehind: 32, "append list: " + digitsBehind: 32,
	}))
	asked := 0
	for _, v := range refdata.Lines[vector](t, "vectors/hostlist_ops.jsonl.gz", refdata.Of(374, 599)) {
		read := func(text string) *hostlist.List {
			l, err := hostlist.Parse(text)
			if err != nil {
				differences.Note(refusal(t, text, err))
			}
			return l
		}
		a, b := read(v.A), read(v.B)
		if a == nil || b == nil {
			continue
		}
		same := func(what string, got *hostlist.List, want string) {
			require.NoError(t, got.Check())
			theirs := parse(t, want)
			require.True(t, theirs.Equal(got), "%s of %q and %q: %s, not %s", what, v.A, v.B, got, want)
			if got.String() == want {
				return
			}
			switch texts := v.A + "," + v.B; {
			case hasDigitsBefore.MatchString(texts):
				differences.Note(what + ": " + digitsBefore)
			case hasDigitsBehind.MatchString(texts):
				differences.Note(what + ": " + digitsBehind)
			default:
				t.Errorf("%s of %q and %q: %s, not %s", what, v.A, v.B, got, want)
			}
		}
		same("copy", a.Clone(), v.Copy)

		appended := a.Clone()
		appended.AppendList(b)
		same("append", appended, v.Append)
		require.Equal(t, v.Appended, appended.Len()-a.Len())
		require.Equal(t, v.AppendCount, appended.Len())
		same("append list", appended, v.AppendList)

		for _, p := range v.Find {
			name, want := p[0].(string), int(p[1].(float64))
			i, ok := a.Find(name)
			require.Equal(t, want >= 0, ok, "%s in %s", name, v.A)
			require.Equal(t, max(want, 0), i)
			asked++
		}
	}
	require.Equal(t, refdata.Of(6599, 11019), asked)
}
