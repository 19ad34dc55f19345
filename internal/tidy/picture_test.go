//go:build !race

package tidy

import (
	"fmt"
	"html"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/joblife/joblife"
)

// deadline is what the Manager says without a Ready.
const deadline = "Deadline"

// pictureFile is the picture of README.md: who sends what to whom, and what is durable when.
const pictureFile = "testdata/overview.svg"

// partners are around the Manager, and what they say to it and it to them. The words of the
// Manager are fields of joblife.Ready, each of which is there.
var partners = []struct {
	name, does, in string
	out            []string // of one arrow each
	note           string   // beside the first out
}{
	{"store", "your log, or database", "records, at a restart; Unlinked", []string{"Append", "Unlink"}, "durable before all below"},
	{"users", "your service", "Submit, Raise, Wait, Purge", []string{"Answers, Journal", "Results, Faults"}, ""},
	{"scheduler", "rset/sched, or yours", "SchedHello, -Ready, -Response", []string{"Hello, Sched"}, ""},
	{"executor", "perilog/exec, or yours", "ExecHello, ExecResponse", []string{"Exec, Raised, Over"}, ""},
	{"nodes", "run prologs, epilogs", "Report, Drained, Offline", []string{"Launch, Signal, Drain"}, ""},
	{"clock", "yours, or virtual", "Tick", []string{deadline}, ""},
}

// picture draws it, in the width of a telephone.
func picture() string {
	const width, left, right, rowHeight = 410, 104, 326, 74
	var b strings.Builder
	y := 12
	text := func(x, y int, class, s string) {
		fmt.Fprintf(&b, `<text x="%d" y="%d" class="%s">%s</text>`+"\n", x, y, class, html.EscapeString(s))
	}
	arrow := func(y int, out bool, class string) {
		from, to := left, right
		if out {
			from, to = right, left
		}
		tip := to - 7
		if out {
			tip = to + 7
		}
		fmt.Fprintf(&b, `<path d="M%d %dH%dM%d %dL%d %dL%d %d" class="%s"/>`+"\n", from, y, to, tip, y-4, to, y, tip, y+4, class)
	}
	top := y
	for _, p := range partners {
		height := rowHeight + 22*(len(p.out)-1)
		fmt.Fprintf(&b, `<rect x="4" y="%d" width="%d" height="%d" rx="5" class="box"/>`+"\n", y, left-4, height-12)
		text(12, y+22, "name", p.name)
		for i, line := range strings.SplitAfter(p.does, ", ") {
			text(12, y+39+13*i, "small", line)
		}
		text(left+8, y+14, "label", p.in)
		arrow(y+20, false, "in")
		for i, out := range p.out {
			class := "then"
			if out == "Append" {
				class = "first"
			}
			at := y + 40 + 22*i
			text(left+12, at, class+"text", out)
			if i == 0 {
				text(left+12+7*len(out)+8, at, "small", p.note)
			}
			arrow(at+6, true, class)
		}
		y += height
	}
	fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" rx="5" class="box"/>`+"\n", right, top, width-4-right, y-12-top)
	text(right+5, (top+y)/2-10, "name", "Manager")
	text(right+5, (top+y)/2+8, "small", "decides,")
	text(right+5, (top+y)/2+21, "small", "no I/O")
	for _, line := range []string{
		"Inputs of Step go in, and a Ready comes out; Deadline is a method.",
		"Append is durable before the rest of the Ready is done.",
		"A restart reads it: what is not there, nobody was told.",
	} {
		text(4, y+6, "small", line)
		y += 15
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="system-ui, sans-serif">
<title>Who sends what to whom: the Manager, store, users, scheduler, executor, nodes and clock</title>
<style>
svg { --ink: #1c1f24; --soft: #59636e; --box: #f3f5f8; --edge: #8b95a1; --first: #b3261e; --then: #0b5cad }
@media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --soft: #a3adb8; --box: #1d242c; --edge: #66707b; --first: #ff8a80; --then: #79b8ff } }
text { font-size: 11px; fill: var(--ink) } .small { fill: var(--soft) } .name { font-size: 13px; font-weight: 600 }
.firsttext { fill: var(--first); font-weight: 600 } .thentext { fill: var(--then); font-weight: 600 }
.box { fill: var(--box); stroke: var(--edge) } path { fill: none; stroke-width: 1.5 }
.in { stroke: var(--soft) } .first { stroke: var(--first); stroke-width: 2.5 } .then { stroke: var(--then) }
</style>
%s</svg>
`, width, y, width, y, b.String())
}

// TestThePictureIsTrue: each part of a Ready is on an arrow, and there is no other.
func TestThePictureIsTrue(t *testing.T) {
	missing := make(map[string]bool)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[joblife.Ready]()) {
		if f.IsExported() && f.Name != "Seq" {
			missing[f.Name] = true
		}
	}
	for _, p := range partners {
		for _, word := range strings.Split(strings.Join(p.out, ", "), ", ") {
			if !missing[word] && word != deadline {
				t.Errorf("%s is no part of a Ready, or there twice", word)
			}
			delete(missing, word)
		}
	}
	if len(missing) > 0 {
		t.Error("not in the picture:", missing)
	}
	if *update {
		must(0, os.WriteFile(pictureFile, []byte(picture()), 0o644))
	}
	if string(must(os.ReadFile(pictureFile))) != picture() {
		t.Error("the picture has changed: look at it, and pass -update")
	}
}
