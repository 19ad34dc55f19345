package jobstate

import (
	"fmt"
	"io"
	"strings"
)

// DiagramFormat selects the language of a diagram. The zero DiagramFormat is invalid.
type DiagramFormat uint8

// The formats of Diagram.
const (
	DiagramDOT     DiagramFormat = 1 + iota // Graphviz
	DiagramMermaid                          // a stateDiagram-v2, as Markdown viewers draw it
)

// Diagram writes the state diagram from the table of transitions that the reducer
// obeys. Events with the same states before and after share an arrow. The error
// comes from w, or says that the format is unknown.
func Diagram(w io.Writer, f DiagramFormat) error {
	var b strings.Builder
	switch f {
	case DiagramDOT:
		b.WriteString("digraph job {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n  start [shape=point];\n")
		for _, a := range arrows() {
			fmt.Fprintf(&b, "  %s -> %s [label=%q];\n", or(a.from, "start"), a.to, strings.Join(a.labels, "\n"))
		}
		b.WriteString("}\n")
	case DiagramMermaid:
		b.WriteString("stateDiagram-v2\n")
		for _, a := range arrows() {
			fmt.Fprintf(&b, "  %s --> %s: %s\n", or(a.from, "[*]"), a.to, strings.Join(a.labels, ", "))
		}
		fmt.Fprintf(&b, "  %s --> [*]\n", StateInactive)
	default:
		return fmt.Errorf("jobstate: unknown diagram format %d", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// arrow is what Diagram draws between two states; from is 0 for the submit that makes the job.
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
