package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
)

//go:embed testdata/sample.txt
var sample string

// playSample plays the conversation that comes with the command. Its own
// command line is that of the transcript and what args add to it.
func playSample(args []string, w io.Writer) error {
	args = slices.DeleteFunc(slices.Clone(args), func(s string) bool { return strings.TrimLeft(s, "-") == "sample" })
	return transcribe(sample, args, w)
}

// transcribe plays a transcript, which is a conversation in lines:
//
//	# a comment, or an empty line
//	$ sched -policy easy -now 1000    the command line, before all others
//	> {"topic":…}                     what the scheduler reads
//	< {"topic":…}                     what it writes
//	! sched: …                        what it tells people
//
// It takes from the script all but the last two, and writes those as they come
// out now. The arguments come after those of the script, and win.
func transcribe(script string, args []string, w io.Writer) error {
	out := bufio.NewWriter(w)
	var s *session
	number := 0
	for text := range strings.Lines(script) {
		text = strings.TrimSuffix(text, "\n")
		mark, rest, _ := strings.Cut(text, " ")
		switch mark {
		case "", "#":
			fmt.Fprintln(out, text)
		case "$":
			words := append(strings.Fields(rest), args...)
			fmt.Fprintln(out, "$", strings.Join(words, " "))
			var o options
			var complaint bytes.Buffer
			if _, ok := o.parse(words[1:], io.Discard, &complaint); !ok {
				return fmt.Errorf("transcript: %s", bytes.TrimSpace(complaint.Bytes()))
			}
			s = newSession(o, prefixer{out, "< "}, prefixer{out, "! "})
			if err := s.hello(); err != nil {
				return err
			}
		case ">":
			number++
			fmt.Fprintln(out, text)
			if err := s.handle(line{number: number, text: []byte(rest)}); err != nil {
				fmt.Fprintln(out, "! sched:", err)
				return out.Flush()
			}
		}
	}
	s.summarize()
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
