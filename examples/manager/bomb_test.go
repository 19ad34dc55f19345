package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/bomb"
)

// TestNoConfigurationTakesFarMoreThanItsLength reads hostile files: those of 1 MiB, and as
// much of them as a configuration may have.
func TestNoConfigurationTakesFarMoreThanItsLength(t *testing.T) {
	name := filepath.Join(t.TempDir(), "c.toml")
	var list []bomb.Bomb
	for _, b := range []bomb.Bomb{
		bomb.Fill("a dotted key", "", "a.", "a=1\n"),
		bomb.Fill("dotted keys", "", "a.b.c.d#=1\n", ""),
		bomb.Fill("a dotted table", "[", "a.", "a]\n"),
		bomb.Fill("tables", "", "[a#]\n", ""),
		bomb.Fill("tables in tables", "[[a]]\n", "[[a.b]]\n", ""),
		bomb.Fill("arrays of tables", "", "[[a]]\n", ""),
		bomb.Fill("keys", "", "a#=1\n", ""),
		bomb.Fill("one key", "", "a=1\n", ""),
		bomb.Nest("nested arrays", "a=", "[", "", "]", "\n"),
		bomb.Nest("nested tables", "a=", "{a=", "1", "}", "\n"),
		bomb.Fill("numbers", "a=[", "1,", "]\n"),
		bomb.Fill("empty arrays", "a=[", "[],", "]\n"),
		bomb.Fill("empty tables", "a=[", "{},", "]\n"),
		bomb.Fill("a long string", `a="`, "x", "\"\n"),
		bomb.Fill("escapes", `a="`, `\u0000`, "\"\n"),
		bomb.Fill("comments", "", "#x\n", ""),
		bomb.Fill("newlines", "", "\n", ""),
	} {
		list = append(list, b, b.Of(maxConfig))
	}
	bomb.Defuse(t, func(text []byte) {
		require.NoError(t, os.WriteFile(name, text, 0o600))
		o := options{file: name}
		_ = o.configure() // most are no configuration
	}, list...)
}
