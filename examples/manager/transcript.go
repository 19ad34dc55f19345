package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

//go:embed testdata/sample.txt
var sample string

// playSample plays the conversation that comes with the command, with the command line
// of the transcript and args. It folds long lines.
func playSample(args []string, w io.Writer) error {
	args = slices.DeleteFunc(slices.Clone(args), func(s string) bool { return strings.TrimLeft(s, "-") == "sample" })
	var played bytes.Buffer
	err := transcribe(sample, args, &played)
	for text := range strings.Lines(played.String()) {
		if _, failed := io.WriteString(w, fold(text)); failed != nil {
			return failed
		}
	}
	return err
}

// Lines of the sample fit a terminal. What goes on in the next line is indented.
const (
	columns = 100
	indent  = "    "
)

// fold returns a line in lines that fit, broken behind commas.
func fold(text string) string {
	var b strings.Builder
	room := columns
	for utf8.RuneCountInString(strings.TrimSuffix(text, "\n")) > room {
		end := 0
		for i, n := range text {
			if n == ',' || end == 0 && n == ' ' && i > 1 {
				end = i + 1
			}
			if utf8.RuneCountInString(text[:i]) >= room-1 && end > 0 {
				break
			}
		}
		b.WriteString(text[:end] + "\n" + indent)
		text, room = text[end:], columns-len(indent)
	}
	return b.String() + text
}

// transcribe plays a transcript, which is a conversation in lines:
//
//	# a comment, or an empty line
//	$ manager -now 1000     the command line, before all others
//	> {"topic":…}           what the manager reads
//	< {"topic":…}           what it writes
//	! manager: …            what it tells people
//
// It takes from the script all but the last two, and writes those as they come out now. A
// second command line ends the process and begins another. The arguments come after those
// of the script, and override them.
func transcribe(script string, args []string, w io.Writer) error {
	out := bufio.NewWriter(w)
	var p *process
	var c *client
	number := 0
	end := func() {
		if p == nil {
			return
		}
		p.stop()
		p.hangUp(c)
		if err := p.end(); err != nil {
			fmt.Fprintln(out, "! manager:", err)
		}
		p = nil
	}
	for text := range strings.Lines(script) {
		text = strings.TrimSuffix(text, "\n")
		mark, rest, _ := strings.Cut(text, " ")
		switch mark {
		case "", "#":
			fmt.Fprintln(out, text)
		case "$":
			end()
			words := append(strings.Fields(rest), args...)
			fmt.Fprintln(out, "$", strings.Join(words, " "))
			var o options
			var complaint bytes.Buffer
			if _, ok := o.parse(words[1:], io.Discard, &complaint); !ok {
				return fmt.Errorf("transcript: %s", bytes.TrimSpace(complaint.Bytes()))
			}
			var err error
			if p, err = newProcess(o, prefixer{out, "! "}); err != nil {
				return err
			}
			number, c = 0, p.only(prefixer{out, "< "})
			p.start()
		case ">":
			number++
			fmt.Fprintln(out, text)
			p.handle(c, line{number: number, text: []byte(rest)})
			p.await()
			if p.failed != nil {
				end()
				return out.Flush()
			}
		}
	}
	end()
	return out.Flush()
}

// prefixer writes what is written to it, whole lines, behind a prefix.
type prefixer struct {
	w      io.Writer
	prefix string
}

func (p prefixer) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, p.prefix); err != nil {
		return 0, err
	}
	return p.w.Write(b)
}
