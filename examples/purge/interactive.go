package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// maxLine is the longest command.
const maxLine = 4096

// A command is one word of the interactive mode.
type command struct {
	name, args, help string
	do               func(s *session, words []string) error
}

// errUse tells that a command has wrong arguments.
var errUse = errors.New("wrong arguments")

// errQuit ends the session.
var errQuit = errors.New("quit")

// commands returns the commands in the order of help.
func commands() []command {
	return []command{
		{"list", "[N]", "the N oldest jobs, and the pins they have", (*session).cmdList},
		{"plan", "", "dry run: what goes by the limits, and why", (*session).cmdPlan},
		{"purge", "[--force]", "purge by the limits", (*session).cmdPurge},
		{"purge", "ID…", "purge these jobs, whatever the limits say", nil},
		{"pin", "ID WHY [WHO]", "keep a job; WHY is housekeeping, waiter or dependency", (*session).cmdPin},
		{"unpin", "ID WHY [WHO]", "take a pin away", (*session).cmdUnpin},
		{"ask", "ID", "does a dependency on this job hold?", (*session).cmdAsk},
		{"limits", "[KEY=VALUE…]", "show or set age=FSD num=N min-age=FSD batch=N; none unsets", (*session).cmdLimits},
		{"advance", "FSD [--accept]", "let time pass, or go back with a minus; --accept a step once", (*session).cmdAdvance},
		{"stats", "", "counts by result", (*session).cmdStats},
		{"help", "", "this", (*session).cmdHelp},
		{"quit", "", "end; the end of the input does, too", func(*session, []string) error { return errQuit }},
	}
}

// interact obeys commands until the input ends. No command ends it but quit.
func (s *session) interact(stdin io.Reader, prompt bool) error {
	in := bufio.NewReaderSize(stdin, maxLine)
	for {
		if prompt {
			fmt.Fprint(s.out, "purge> ")
		}
		if s.out.Flush() != nil {
			return nil // whoever flushes last reports it
		}
		line, long, err := readLine(in)
		switch {
		case err == io.EOF:
			if prompt {
				fmt.Fprintln(s.out)
			}
			return nil
		case err != nil:
			return fmt.Errorf("input: %w", err)
		case long:
			fmt.Fprintf(s.out, "! the line is longer than %d bytes and was passed over\n", maxLine)
		case !s.obey(line):
			return nil
		}
	}
}

// readLine returns the next line. One that is too long is passed over.
func readLine(in *bufio.Reader) (line string, long bool, err error) {
	for {
		part, more, err := in.ReadLine()
		switch {
		case err != nil && long:
			return "", true, nil // what follows tells of the error
		case err != nil:
			return "", false, err
		case !more && !long:
			return string(part), false, nil
		case !more:
			return "", true, nil
		}
		long = true
	}
}

// obey does one command and answers in s.out. It returns false after quit. An
// empty line and one that begins with # do nothing.
func (s *session) obey(line string) bool {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return true
	}
	for _, c := range commands() {
		if c.name != words[0] {
			continue
		}
		err := c.do(s, words[1:])
		switch {
		case err == errQuit:
			return false
		case err == errUse:
			fmt.Fprintf(s.out, "! usage: %s\n", usageOf(c.name))
		case err != nil:
			s.refuse(err)
		}
		return true
	}
	fmt.Fprintf(s.out, "! there is no command %s: help tells what there is\n", quoted(words[0]))
	return true
}

// usageOf returns how to use a command.
func usageOf(name string) string {
	var uses []string
	for _, c := range commands() {
		if c.name == name {
			uses = append(uses, strings.TrimSpace(c.name+" "+c.args))
		}
	}
	return strings.Join(uses, " or ")
}

// quoted returns the start of a word, quoted.
func quoted(word string) string { return fmt.Sprintf("%q", word[:min(len(word), 64)]) }

func (s *session) cmdHelp([]string) error {
	for _, c := range commands() {
		fmt.Fprintf(s.out, "  %-22s %s\n", c.name+" "+c.args, c.help)
	}
	return nil
}

func (s *session) cmdList(words []string) error {
	n := 10
	switch {
	case len(words) > 1:
		return errUse
	case len(words) == 1:
		if err := number(&n, 1, 1000)(words[0]); err != nil {
			return err
		}
	}
	s.list(n)
	return nil
}

func (s *session) cmdPlan(words []string) error {
	if len(words) > 0 {
		return errUse
	}
	return s.dryRun("type purge --force")
}

func (s *session) cmdPurge(words []string) error {
	switch {
	case len(words) == 0:
		return s.dryRun("type purge --force")
	case len(words) == 1 && (words[0] == "--force" || words[0] == "-force"):
		return s.purgeByLimits()
	case strings.HasPrefix(words[0], "-"):
		return errUse
	case len(words) > maxIDs:
		return fmt.Errorf("%d IDs, at most %d are allowed: give them in several commands", len(words), maxIDs)
	}
	ids, err := parseIDs(words)
	if err != nil {
		return err
	}
	s.purgeIDs(ids)
	return nil
}

// parsePin reads the arguments of pin and unpin.
func parsePin(words []string) (jobid.ID, purge.Pin, error) {
	if len(words) < 2 {
		return 0, purge.Pin{}, errUse
	}
	ids, err := parseIDs(words[:1])
	if err != nil {
		return 0, purge.Pin{}, err
	}
	who := strings.Join(words[2:], " ")
	if strings.ContainsFunc(who, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return 0, purge.Pin{}, fmt.Errorf("WHO is %s: want what can be printed", quoted(who))
	}
	for _, kind := range []purge.PinKind{purge.Housekeeping, purge.Waiter, purge.Dependent} {
		if kind.String() == words[1] {
			return ids[0], purge.Pin{Kind: kind, By: who}, nil
		}
	}
	return 0, purge.Pin{}, fmt.Errorf("%s is no reason: want housekeeping, waiter or dependency", quoted(words[1]))
}

func (s *session) cmdPin(words []string) error {
	id, pin, err := parsePin(words)
	if err != nil {
		return err
	}
	return s.pin(id, pin)
}

func (s *session) cmdUnpin(words []string) error {
	id, pin, err := parsePin(words)
	if err != nil {
		return err
	}
	return s.unpin(id, pin)
}

func (s *session) cmdAsk(words []string) error {
	if len(words) != 1 {
		return errUse
	}
	ids, err := parseIDs(words)
	if err != nil {
		return err
	}
	return s.ask(ids[0])
}

// cmdLimits sets all limits of a line or none.
func (s *session) cmdLimits(words []string) error {
	l := s.limits
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return errUse
		}
		if err := setLimit(&l, key, value); err != nil {
			return fmt.Errorf("%s: %w", quoted(word), err)
		}
	}
	s.limits = l
	fmt.Fprintln(s.out, "limits:", describe(l))
	return nil
}

// setLimit sets one limit from its text.
func setLimit(l *purge.Limits, key, value string) error {
	var (
		d time.Duration
		n int
	)
	none := value == "none"
	switch key {
	case "age", "min-age":
		limit := purge.Limit[time.Duration]{}
		if !none {
			if err := duration(&d)(value); err != nil {
				return err
			}
			limit = purge.To(d)
		}
		if key == "age" {
			l.MaxAge = limit
		} else {
			l.MinAge = limit
		}
	case "num":
		l.MaxCount = purge.Limit[int]{}
		if !none {
			if err := number(&n, 0, maxJobs)(value); err != nil {
				return err
			}
			l.MaxCount = purge.To(n)
		}
	case "batch":
		if !none {
			if err := number(&n, 1, purge.MaxBatch)(value); err != nil {
				return err
			}
		}
		l.Batch = n
	default:
		return errors.New("there is no such limit: want age, num, min-age or batch")
	}
	return nil
}

func (s *session) cmdAdvance(words []string) error {
	accept := len(words) == 2 && words[1] == "--accept"
	if len(words) != 1 && !accept {
		return errUse
	}
	var step time.Duration
	if err := signed(&step)(words[0]); err != nil {
		return err
	}
	return s.advance(step, accept)
}

func (s *session) cmdStats(words []string) error {
	if len(words) > 0 {
		return errUse
	}
	s.table("NOW")
	return nil
}
