package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzInput: whatever is piped in, every form of the answer ends with a status,
// is printable, and with -json is one JSON object a line.
func FuzzInput(f *testing.F) {
	sample, err := os.ReadFile(samplePath)
	require.NoError(f, err)
	f.Add(sample)
	f.Add([]byte(`{"timestamp":1.5,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}` + "\n"))
	f.Add([]byte(`{"id":1,"eventlog":"{\"timestamp\":1,\"name\":\"submit\"}\n","R":null,"jobspec":{}}` + "\n"))
	f.Add([]byte(`{"id":null,"eventlog":7}` + "\n{\n"))
	f.Add([]byte("BZh"))
	f.Fuzz(func(t *testing.T, input []byte) {
		for _, args := range [][]string{nil, {"-json"}, {"-events"}, {"-validate"}} {
			status, stdout, stderr := replay(t, bytes.NewReader(input), append(args, "-")...)
			require.Contains(t, []int{exitOK, exitFault}, status)
			for _, text := range []string{stdout, stderr} {
				require.NotContains(t, text, "\x1b")
				require.True(t, text == "" || strings.HasSuffix(text, "\n"), "%q", text)
			}
			if len(args) == 0 || args[0] != "-json" {
				continue
			}
			for line := range strings.Lines(stdout) {
				var object map[string]any
				require.NoError(t, json.Unmarshal([]byte(line), &object), "%q", line)
			}
		}
	})
}
