package eventlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	require.Contains(t, n.slots[:], strings.Repeat("y", maxRemembered))
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

// TestTheUsualPathIsTaken: without this the other one could do all the work, and
// no other test would tell.
func TestTheUsualPathIsTaken(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.eventlog")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	p := parser{o: DecoderOptions{}.inForce()}
	for _, path := range paths {
		log, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range bytes.Lines(log) {
			line = line[:len(line)-1]
			var usual, unusual Entry
			require.True(t, p.usual(line, &usual), "%s", line)
			require.Nil(t, p.unusual(line, &unusual))
			require.Equal(t, unusual, usual)
			require.Equal(t, len(usual.Context), cap(usual.Context))
		}
	}
}

func TestOnlyAnUnusualLineIsRemembered(t *testing.T) {
	for line, want := range map[string]bool{
		`{"timestamp":1.0,"name":"x","context":{}}`:             false,
		` { "timestamp":1.0, "name":"\u0078", "context":{ } } `: false,
		`{"name":"x","timestamp":1.0}`:                          true,
		`{"timestamp":1.0,"context":{},"name":"x"}`:             true,
		`{"timestamp":1.0,"name":"x","other":1}`:                true,
	} {
		e, err := Parse([]byte(line))
		require.NoError(t, err)
		require.Equal(t, want, e.line != nil, line)
	}
}
