package eventlog

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAKnownNameIsItself(t *testing.T) {
	source, err := os.ReadFile("names.go")
	require.NoError(t, err)
	cases := regexp.MustCompile(`case "(.*)":`).FindAllStringSubmatch(string(source), -1)
	require.Greater(t, len(cases), 30)
	for _, c := range cases {
		name, ok := known([]byte(c[1]))
		require.True(t, ok)
		require.Equal(t, c[1], name)
	}
	for _, name := range []string{"", "submi", "submitt", "Submit"} {
		_, ok := known([]byte(name))
		require.False(t, ok)
	}
}

func TestNamesAreRememberedAndBounded(t *testing.T) {
	var n names
	for round := range 3 {
		for i := range 1000 {
			want := fmt.Sprintf("debug.%d.%d", i, round/2)
			require.Equal(t, want, n.intern([]byte(want)))
			require.Equal(t, want, n.intern([]byte(want)))
		}
	}
	for _, name := range []string{"", "submit", "x", strings.Repeat("y", maxRemembered), strings.Repeat("z", maxRemembered+1)} {
		require.Equal(t, name, n.intern([]byte(name)))
		require.Equal(t, name, (*names)(nil).intern([]byte(name)))
	}
	for _, s := range n.slots {
		require.LessOrEqual(t, len(s), maxRemembered)
	}
}

func TestANameThatWasRememberedAliasesNothing(t *testing.T) {
	var n names
	b := []byte("debug.x")
	name := n.intern(b)
	clear(b)
	require.Equal(t, "debug.x", name)
	require.Equal(t, "debug.x", n.intern([]byte("debug.x")))
}

func TestErrorsNameCategoryAndCauseOnce(t *testing.T) {
	require.Equal(t, []error{ErrTorn}, (&SyntaxError{Err: ErrTorn, category: ErrTorn}).Unwrap())
	require.Equal(t, []error{ErrSyntax, errReturn}, (&SyntaxError{Err: errReturn, category: ErrSyntax}).Unwrap())
	require.Equal(t, []error{errReturn}, (&SyntaxError{Err: errReturn}).Unwrap())
	require.Equal(t, []error{ErrEntry}, (&EntryError{category: ErrEntry}).Unwrap())
}
