package boltstore_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzOpen overwrites a part of a file, so that nobody can crash a manager with it or change
// a job unnoticed.
func FuzzOpen(f *testing.F) {
	path := sample(f)
	text, err := os.ReadFile(path)
	require.NoError(f, err)
	want, _, err := content(path)
	require.NoError(f, err)
	page := os.Getpagesize()
	for at := 0; at < len(text); at += page { // the head of each page
		f.Add(uint32(at), text[at:at+16])
		f.Add(uint32(at), []byte{1})
		f.Add(uint32(at+16), bytes.Repeat([]byte{255}, 16))
	}
	f.Fuzz(func(t *testing.T, at uint32, patch []byte) {
		bad := bytes.Clone(text)
		copy(bad[int64(at)%int64(len(bad)):], patch)
		harm(t, filepath.Join(t.TempDir(), "jobs.db"), want, bad)
	})
}
