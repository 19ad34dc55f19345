package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// PlaySample plays the conversation that comes with a program, with the command line
// of the transcript and args.
func PlaySample(create func() *Program, args []string, w io.Writer) error {
	args = slices.DeleteFunc(slices.Clone(args), func(s string) bool { return strings.TrimLeft(s, "-") == "sample" })
	return Transcribe(create, create().Sample, args, w)
}

// A Peer has a conversation that is played.
type Peer interface {
	// Take takes a line, and does all that can be done then. An error ends the conversation.
	Take(Line) error
	// End ends the conversation.
	End() error
}

// Transcribe plays a transcript, which is a conversation in lines:
//
//	# a comment, or an empty line
//	$ manager -now 1000     the command line, before all others
//	> {"topic":…}           what the program reads
//	< {"topic":…}           what it writes
//	! manager: …            what it tells people
//
// It takes from the script all but the last two, and writes those as they come out now. A
// second command line ends the conversation and begins another. The arguments come after
// those of the script, and override them.
func Transcribe(create func() *Program, script string, args []string, w io.Writer) error {
	out := bufio.NewWriter(w)
	var p *Program
	var peer Peer
	number := 0
	end := func(err error) {
		if peer == nil {
			return
		}
		if ended := peer.End(); err == nil {
			err = ended
		}
		if err != nil && !errors.Is(err, ErrRefused) {
			fmt.Fprintf(out, "! %s: %s\n", p.Name, Escape(err.Error()))
		}
		peer = nil
	}
	for text := range strings.Lines(script) {
		text = strings.TrimSuffix(text, "\n")
		mark, rest, _ := strings.Cut(text, " ")
		switch mark {
		case "", "#":
			fmt.Fprintln(out, text)
		case "$":
			end(nil)
			words := append(strings.Fields(rest), args...)
			fmt.Fprintln(out, "$", strings.Join(words, " "))
			var complaint bytes.Buffer
			p = create()
			if _, ok := p.Parse(words[1:], io.Discard, &complaint); !ok {
				return fmt.Errorf("transcript: %s", bytes.TrimSpace(complaint.Bytes()))
			}
			var err error
			if peer, err = p.Begin(prefixer{out, "< "}, prefixer{out, "! "}); err != nil {
				return err
			}
			number = 0
		case ">":
			number++
			fmt.Fprintln(out, text)
			if err := peer.Take(Line{Number: number, Text: []byte(rest)}); err != nil {
				end(err)
				return out.Flush()
			}
		}
	}
	end(nil)
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
