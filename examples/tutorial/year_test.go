package tutorial

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
)

var update = flag.Bool("update", false, "write logs/year.tar.gz")

// TestYear keeps logs/year.tar.gz as the simulator makes it: the jobs of a year on 8 nodes.
func TestYear(t *testing.T) {
	if os.Getenv("JOBLIFE_DEEP") == "" && !*update {
		t.Skip("it runs the simulator: set JOBLIFE_DEEP=1")
	}
	dir := t.TempDir()
	args := "-html= -seeds 1 -load 0 -nodes 8 -max-size 4 -jobs 400 -arrival 22h -runtime 40h -max-runtime 168h -fail 0.05 -mtbf 4000h -straggle 0.02 -straggler 6h -log " + dir
	out, err := exec.Command("go", append([]string{"run", "../simulate"}, strings.Fields(args)...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(filepath.Join(dir, "partial.jsonl"))
	require.NoError(t, err)
	dump := pack(t, text)
	const name = "logs/year.tar.gz"
	if *update {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		require.NoError(t, err)
		_, err = w.Write(dump)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile(name, b.Bytes(), 0o666))
	}
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	r, err := gzip.NewReader(f)
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.True(t, bytes.Equal(dump, got), "go test ./examples/tutorial -run Year -update")
}

// The jobs of a year take more than a time.Duration can have: 292 years.
func TestTheLogsOfManyYears(t *testing.T) {
	var text []byte
	for id := range 2 {
		log := `{"timestamp":1,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}
{"timestamp":1,"name":"validate"}
{"timestamp":1,"name":"depend"}
{"timestamp":1,"name":"priority","context":{"priority":16}}
{"timestamp":7000000001,"name":"exception","context":{"type":"cancel","severity":0}}
{"timestamp":7000000001,"name":"clean"}
`
		text = fmt.Appendf(text, `{"id":%d,"eventlog":%q,"jobspec":{}}`+"\n", id, log)
	}
	name := filepath.Join(t.TempDir(), "dump.tar")
	require.NoError(t, os.WriteFile(name, pack(t, text), 0o600))
	out, err := exec.Command("go", "run", "./logs", name).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "SCHED: 1944444h26m40s on average")
}

// A node was held for no time if the clock was set back meanwhile.
func TestTheLogOfAClockThatWasSetBack(t *testing.T) {
	log := `{"timestamp":1,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}
{"timestamp":1,"name":"validate"}
{"timestamp":1,"name":"depend"}
{"timestamp":1,"name":"priority","context":{"priority":16}}
{"timestamp":7200,"name":"alloc"}
{"timestamp":1,"name":"exception","context":{"type":"cancel","severity":0}}
{"timestamp":1,"name":"free"}
{"timestamp":1,"name":"clean"}
`
	r := `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"starttime":0,"expiration":0,"nodelist":["a"]}}`
	name := filepath.Join(t.TempDir(), "dump.tar")
	require.NoError(t, os.WriteFile(name, pack(t, fmt.Appendf(nil, `{"id":0,"eventlog":%q,"R":%s,"jobspec":{}}`+"\n", log, r)), 0o600))
	out, err := exec.Command("go", "run", "./logs", name).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Regexp(t, "job +at most 0.0 h, on rank 0", string(out))
}

// pack makes the dump of an instance from JSON lines.
func pack(t *testing.T, text []byte) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var j struct {
			ID         jobid.ID
			Eventlog   string
			R, Jobspec json.RawMessage
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &j))
		for _, key := range [][2]string{{"R", string(j.R)}, {"eventlog", j.Eventlog}, {"jobspec", string(j.Jobspec)}} {
			if key[1] != "" {
				path := strings.ReplaceAll(j.ID.KVSPath(), ".", "/") + "/" + key[0]
				require.NoError(t, w.WriteHeader(&tar.Header{Name: path, Mode: 0o600, Size: int64(len(key[1]))}))
				_, err := io.WriteString(w, key[1])
				require.NoError(t, err)
			}
		}
	}
	require.NoError(t, lines.Err())
	require.NoError(t, w.Close())
	return b.Bytes()
}
