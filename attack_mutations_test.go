//go:build joblife_mutations

package joblife_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/attack"
)

// mutants are deliberate faults: each replaces a text of a file by another one.
var mutants = []struct{ name, file, from, to string }{
	{"the last fragment is not final", "machine.go", tookEffects, tookEffects + "\ntodo.Free.Final = false"},
	{"an epilog does not hold its ranks", "machine.go", tookEffects, tookEffects + `
	for _, l := range todo.Launch {
		if l.Action.Kind == jobstate.ActionEpilog {
			todo.Free.R, todo.Free.Final = j.r, true
		}
	}`},
	{"a job starts before its prologs end", "machine.go", tookEffects, tookEffects + `
	for _, l := range todo.Launch {
		todo.Start = todo.Start || l.Action.Kind == jobstate.ActionProlog
	}`},
	{"a drain is forgotten", "machine.go", tookEffects, tookEffects + "\nif m.seq == 0 {\ntodo.Drain = nil\n}"},
	{"a record is dropped", "ready.go", keepsRecord, keepsRecord + "\nif len(o.out.Append) == 3 {\nreturn\n}"},
	{"the watermark is not stored", "ready.go", keepsRecord, keepsRecord + "\nif r.Kind == RecordWatermark {\nreturn\n}"},
	{"tombstones are not stored", "ready.go", keepsRecord, keepsRecord + "\nif r.Kind == RecordTombstone && len(r.Data) > 0 {\nreturn\n}"},
	{"an old attempt's report counts", "partners.go", "a = j.life.Report(m.now, in.Report)", `
		if a = j.life.Report(m.now, in.Report); a == perilog.AckStale {
			in.Attempt++
			a = j.life.Report(m.now, in.Report)
		}`},
	{"a response of before an update counts", "sessions.go", "s.send(s.queue.Renew(s.sends, j.id))", "s.send(s.queue.Stop(s.sends, j.id))"},
	{"an id comes back", "request.go", "_, ended := m.index.Ended(id)", "ended := false"},
	{"a journal names nobody", "ready.go", "UserID: j.job().UserID(), Entry", "Entry"},
	{"a jobspec has no limit", "request.go", `fitsIn(m.cfg.maxJobspec(), maxDepth, "jobspec", text, 0)`, `fitsIn(maxData, maxDepth, "jobspec", text, 0)`},
	{"a late allocation is kept", "sessions.go", "if msg.Topic == alloc.TopicAlloc {", "if msg.Topic == alloc.TopicFree {\ncontinue\n}\nif msg.Topic == alloc.TopicAlloc {"},
}

const (
	tookEffects = "todo := j.life.Take(m.now)"
	keepsRecord = "r.Time, r.sound = o.now, true"
)

// TestMutations builds the package with one deliberate fault after the other, and fails if
// the harness does not find one. Run it with -tags joblife_mutations.
func TestMutations(t *testing.T) {
	if os.Getenv("JOBLIFE_MUTANT") != "" {
		for seed := range uint64(3000) {
			if p := attack.Play(seed, func(t *attack.Tape) { newPlay(t).run() }); p.Failed != "" {
				t.Logf("found by seed %d: %.200s", seed, p.Failed)
				return
			}
		}
		t.Fatal("the mutant survives")
	}
	for _, mutant := range mutants {
		t.Run(mutant.name, func(t *testing.T) {
			source, err := os.ReadFile(mutant.file)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(source), mutant.from), "%s has changed: %q", mutant.file, mutant.from)
			file, err := filepath.Abs(mutant.file)
			require.NoError(t, err)
			dir := t.TempDir()
			changed, overlay := filepath.Join(dir, mutant.file), filepath.Join(dir, "overlay.json")
			require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(source), mutant.from, mutant.to, 1)), 0o600))
			list, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, list, 0o600))
			cmd := exec.Command("go", "test", "-vet=off", "-overlay", overlay, "-tags", "joblife_mutations", "-run", "^TestMutations$", "-count=1", "-v", ".")
			cmd.Env = append(os.Environ(), "JOBLIFE_MUTANT=1")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			t.Logf("%s", out)
		})
	}
}
