package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSoakKills runs jobs through many kills in any order, for as long as JOBLIFE_SOAK says.
func TestSoakKills(t *testing.T) {
	text := os.Getenv("JOBLIFE_SOAK")
	if text == "" {
		t.Skip("JOBLIFE_SOAK is not set")
	}
	t.Parallel()
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	end := time.Now().Add(d)
	for n := 0; time.Now().Before(end); n++ {
		seed := uint64(time.Now().UnixNano())
		t.Log("seed", seed)
		store, jobs := "bolt:", 500
		if n%4 == 3 {
			store, jobs = "dir:", 60
		}
		h := newHub(t, "-store="+store+filepath.Join(t.TempDir(), "jobs"), seed)
		var kills []string
		for range 20 {
			kills = append(kills, []string{"manager", "sched", "executor"}[h.rng.IntN(3)])
		}
		h.play(jobs, kills...)
		h.check(jobs)
		if t.Failed() {
			return
		}
	}
}
