package hostlist_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/rset/hostlist"
)

// syntaxError begins the errors about texts.
const syntaxError = "hostlist: syntax error"

// The clauses of RFC 29, in its order.

func parse(t require.TestingT, text string) *hostlist.List {
	l, err := hostlist.Parse(text)
	require.NoError(t, err)
	require.NoError(t, l.Check())
	return l
}

func refuse(t require.TestingT, text string) {
	l, err := hostlist.Parse(text)
	require.ErrorContains(t, err, syntaxError, "%q", text)
	require.Nil(t, l)
}

// hosts returns the hosts of a list, with a comma between them.
func hosts(t require.TestingT, l *hostlist.List) string {
	require.LessOrEqual(t, l.Len(), 1<<20)
	return strings.Join(slices.Collect(l.All()), ",")
}

// HL-1.
func TestRFC29AHostlistIsAnOrderedListOfStrings(t *testing.T) {
	for _, text := range []string{"foo2,foo1,bar", "b,a,b,a", "9,8,7", "a1,a01,a001,a1"} {
		require.Equal(t, text, hosts(t, parse(t, text)))
	}
	require.False(t, parse(t, "a,b").Equal(parse(t, "b,a")))
}

func TestRFC29ExpressionsAreSeparatedByCommas(t *testing.T) {
	require.Equal(t, "a,b1,b2,c", hosts(t, parse(t, "a,b[1-2],c")))
	for _, text := range []string{"a b", "a, b", "a\tb", " a", "a ", "a\n", "a[1] b", "a[1],\tb"} {
		refuse(t, text)
	}
	require.Equal(t, "a;b", hosts(t, parse(t, "a;b")), "no separator, so part of a name")
}

func TestRFC29PrefixIdlistAndSuffixAreOptional(t *testing.T) {
	for text, want := range map[string]string{
		"foo": "foo", "[1-2]": "1,2", "foo[1-2]": "foo1,foo2", "[1-2]-ib": "1-ib,2-ib",
		"foo[1-2]-ib": "foo1-ib,foo2-ib", "foo-ib": "foo-ib", "7": "7",
	} {
		require.Equal(t, want, hosts(t, parse(t, text)), text)
	}
}

func TestRFC29AnEmptyExpressionIsAnEmptyList(t *testing.T) {
	for _, text := range []string{"", ",", ",,,"} {
		require.True(t, parse(t, text).IsEmpty())
		require.Equal(t, "", parse(t, text).String())
	}
	for _, text := range []string{"a,,b", ",a,b", "a,b,", ",,a,,b,,"} {
		require.Equal(t, "a,b", parse(t, text).String())
	}
}

func TestRFC29NamesArePrintableASCIIWithoutSpaceBracketAndComma(t *testing.T) {
	for c := range 256 {
		b := string([]byte{byte(c)})
		if c > ' ' && c < 0x7f && !strings.Contains("[],", b) {
			for _, text := range []string{b, "a" + b + "c", b + "[1]", "a[1]" + b} {
				require.Equal(t, 1, parse(t, text).Len())
			}
			require.Equal(t, b, hosts(t, parse(t, b)))
			require.Equal(t, "a"+b+"1"+b+"c", hosts(t, parse(t, "a"+b+"[1]"+b+"c")))
		} else if c != ',' {
			for _, text := range []string{b, b + "a", "a" + b, b + "[1]", "a[1]" + b} {
				refuse(t, text)
			}
			require.ErrorContains(t, new(hostlist.List).Append("a"+b+"c"), syntaxError)
		}
	}
}

func TestRFC29IdsAreNotNegative(t *testing.T) {
	for _, text := range []string{"a[-1]", "a[-1-3]", "a[1--3]", "a[1,-2]", "a[-]", "a[1-2-3]", "a[+1]", "a[1-+3]"} {
		refuse(t, text)
	}
}

func TestRFC29AnIdlistMayBeAnyOrderAndCompressed(t *testing.T) {
	want := "a5,a4,a10,a11,a12,a13"
	for _, text := range []string{"a[5,4,10,11,12,13]", "a[5,4,10-13]", "a[5,4,10-12,13]", "a[5,4,10-10,11-13]"} {
		require.Equal(t, want, hosts(t, parse(t, text)))
		require.Equal(t, "a[5,4,10-13]", parse(t, text).String())
	}
	for _, text := range []string{"a[3-1]", "a[10-9]", "a[1,3-2]"} {
		refuse(t, text)
	}
}

// The RFC gives the zeros of an idlist's first element to all of them. No
// instance does so: each element has its own, and what an instance wrote must
// be read as it was meant.
// HL-1.
func TestRFC29LeadingZerosAreKeptWithinOneElement(t *testing.T) {
	require.Equal(t, "005,4,11,12,13", hosts(t, parse(t, "[005,4,11-13]")))
	require.Equal(t, "[005,4,11-13]", parse(t, "[005,4,11-13]").String())
	require.Equal(t, "a005,a006,a007", hosts(t, parse(t, "a[005-7]")))
	require.Equal(t, "a005,a006,a007", hosts(t, parse(t, "a[005-0007]")))
	require.Equal(t, "a8,a9,a10", hosts(t, parse(t, "a[8-010]")), "the last id's zeros say nothing")
	require.Equal(t, "a08,a09,a10", hosts(t, parse(t, "a[08-10]")))
	require.Equal(t, "a99,a100,a101", hosts(t, parse(t, "a[99-101]")))
	require.Equal(t, "a099,a100,a1000", hosts(t, parse(t, "a[099-100,1000]")))
}

func TestRFC29AnIdlistMayRepeatNumbers(t *testing.T) {
	require.Equal(t, "a2,a2,a2", hosts(t, parse(t, "a[2,2,2]")))
	require.Equal(t, "a1,a2,a3,a2,a3", hosts(t, parse(t, "a[1-3,2-3]")))
}

func TestRFC29AnIdlistIsInBrackets(t *testing.T) {
	for _, text := range []string{
		"[", "]", "a[", "a]", "a[]", "a[1", "a[1-", "a[1,", "a1]", "a[[1]]", "a[1]]", "a[1][2]", "a[1]b[2]", "a[1]b]", "a[1,[2]]", "a[1-]",
		"a[1,]", "a[,1]", "a[1,,2]", "a[x]", "a[1x]", "a[1-x]", "a[ 1]", "a[1 ]", "a[1\n]", "a[", "a,[", "a[1],b[",
	} {
		refuse(t, text)
	}
	require.Equal(t, "a-1,2", hosts(t, parse(t, "a-1,2")), "no idlist without brackets")
}

func TestRFC29TestVectors(t *testing.T) {
	for text, want := range map[string]string{
		"":               "",
		"foox,fooy,fooz": "foox,fooy,fooz",
		"[1-3,5-6]":      "1,2,3,5,6",
		"foo[1-5]":       "foo1,foo2,foo3,foo4,foo5",
		"foo[0-4]-eth2":  "foo0-eth2,foo1-eth2,foo2-eth2,foo3-eth2,foo4-eth2",
		"foo1,foo1,foo1": "foo1,foo1,foo1",
		"[00-02]":        "00,01,02",
		"[00-2]":         "00,01,02",
		"foo[1,1,2,1]":   "foo1,foo1,foo2,foo1",
	} {
		require.Equal(t, want, hosts(t, parse(t, text)), text)
		require.True(t, parse(t, text).Equal(parse(t, want)), text)
	}
}
