package jobstate

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The state diagrams, for Graphviz and for Markdown viewers, are made from the table that the
// reducer obeys, so they cannot lie. Events with the same states before and after share an arrow.
func TestDiagramsAreTheGoldenOnes(t *testing.T) {
	var dot, mermaid strings.Builder
	dot.WriteString("digraph job {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n  start [shape=point];\n")
	mermaid.WriteString("stateDiagram-v2\n")
	for _, a := range arrows() {
		fmt.Fprintf(&dot, "  %s -> %s [label=%q];\n", or(a.from, "start"), a.to, strings.Join(a.labels, "\n"))
		fmt.Fprintf(&mermaid, "  %s --> %s: %s\n", or(a.from, "[*]"), a.to, strings.Join(a.labels, ", "))
	}
	dot.WriteString("}\n")
	fmt.Fprintf(&mermaid, "  %s --> [*]\n", StateInactive)
	for file, text := range map[string]string{"testdata/states.dot": dot.String(), "testdata/states.mmd": mermaid.String()} {
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), text, "%s: read the difference, then run with -update", file)
	}
}

// arrow is what a diagram draws between two states; from is 0 for the submit that makes the job.
type arrow struct {
	from, to State
	labels   []string
}

// arrows returns the edges of the table in the order of their states, and of the table.
func arrows() []arrow {
	var out []arrow
	add := func(from, to State, label string) {
		for i := range out {
			if out[i].from == from && out[i].to == to {
				out[i].labels = append(out[i].labels, label)
				return
			}
		}
		out = append(out, arrow{from, to, []string{label}})
	}
	for from := State(0); from <= StateInactive; from = max(1, from<<1) {
		for k := range table {
			for _, e := range table[k].edges {
				label := table[k].name
				if e.when != "" {
					label += " (" + e.when + ")"
				}
				switch {
				case from == 0 && kind(k) == kSubmit:
					add(0, e.to, label)
				case from != 0 && kind(k) != kSubmit && from.In(e.from):
					add(from, e.to, label)
				}
			}
		}
		if from == StateInactive {
			break
		}
	}
	return out
}

func or(s State, none string) string {
	if s == 0 {
		return none
	}
	return s.String()
}
