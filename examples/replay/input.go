package main

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Limits of an input.
const (
	maxLine = 64 << 20  // of JSON lines: one job
	maxLog  = 256 << 20 // of a file that is one log
)

// The first bytes of what readInput knows.
var (
	magicGzip  = []byte{0x1f, 0x8b}
	magicBzip2 = []byte("BZh")
	magicTar   = []byte("ustar")
)

// offsetTar is where a tar archive has its magic.
const offsetTar = 257

// readInput finds out what r is, and adds the jobs in it.
func (s *session) readInput(name string, r io.Reader) error { return s.unpack(name, r, 0) }

// maxLayers is how often one compression may stand in another: a file that
// unpacks to itself must come to an end.
const maxLayers = 2

func (s *session) unpack(name string, r io.Reader, layers int) error {
	if layers > maxLayers {
		return fmt.Errorf("is compressed more than %d times over", maxLayers)
	}
	br := bufio.NewReaderSize(r, 1<<16)
	head, err := br.Peek(offsetTar + len(magicTar))
	switch {
	case len(head) == 0 && errors.Is(err, io.EOF):
		return errors.New("is empty")
	case len(head) == 0:
		return err
	case bytes.HasPrefix(head, magicGzip):
		z, err := gzip.NewReader(br)
		if err != nil {
			return err
		}
		return s.unpack(name, z, layers+1)
	case bytes.HasPrefix(head, magicBzip2):
		return s.unpack(name, bzip2.NewReader(br), layers+1)
	case len(head) >= offsetTar && bytes.HasPrefix(head[offsetTar:], magicTar):
		return s.readArchive(name, br)
	default:
		return s.readText(name, br)
	}
}

// readText reads JSON lines of recorded jobs, or the log of one job: the first
// line tells which.
func (s *session) readText(name string, br *bufio.Reader) error {
	line, err := readLine(br)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !isRecordings(line, br) {
		return s.readLog(name, line, br)
	}
	for n := 1; len(line) > 0; n++ {
		if in, err := parseRecording(line); err != nil {
			s.fault("%s: line %d: %v", name, n, err)
		} else {
			s.add(name, in)
		}
		if err != nil {
			break
		}
		if line, err = readLine(br); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// isRecordings reports whether a text is JSON lines of recorded jobs: its first
// line has an eventlog, or is bad and a line after it has one.
func isRecordings(first []byte, rest *bufio.Reader) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal(first, &keys) == nil {
		return keys["eventlog"] != nil
	}
	ahead, _ := rest.Peek(rest.Size())
	return bytes.Contains(ahead, []byte(`"eventlog":`))
}

// readLog reads the rest of the log of one job, whose id it does not know.
func (s *session) readLog(name string, first []byte, r io.Reader) error {
	rest, err := io.ReadAll(io.LimitReader(r, maxLog))
	if err != nil {
		return err
	}
	if len(rest) == maxLog {
		return fmt.Errorf("is no archive, and as a log it is longer than %d MiB", maxLog>>20)
	}
	s.add(name, input{noID: true, eventlog: append(first, rest...)})
	return nil
}

// readLine reads a line with its newline, or what is left with io.EOF.
func readLine(br *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("has a line longer than %d MiB", maxLine>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// parseRecording reads one line of recorded jobs.
func parseRecording(line []byte) (input, error) {
	var rec struct {
		ID       *jobid.ID       `json:"id"`
		Eventlog string          `json:"eventlog"`
		R        json.RawMessage `json:"R"`
		Jobspec  json.RawMessage `json:"jobspec"`
	}
	if err := json.Unmarshal(line, &rec); err != nil {
		return input{}, err
	}
	in := input{noID: rec.ID == nil, eventlog: []byte(rec.Eventlog)}
	if rec.ID != nil {
		in.id = *rec.ID
	}
	for dst, raw := range map[*[]byte]json.RawMessage{&in.r: rec.R, &in.jobspec: rec.Jobspec} {
		if string(raw) != "null" {
			*dst = raw
		}
	}
	return in, nil
}

// readArchive reads a dump archive. A job that is damaged is a fault, and does
// not keep the others from being told.
func (s *session) readArchive(name string, r io.Reader) error {
	a, err := archive.Read(r, archive.Limits{})
	for _, failure := range a.Failures {
		s.fault("%s: %v", name, failure)
	}
	for _, j := range a.Jobs {
		s.add(name, input{id: j.ID, eventlog: j.Eventlog, r: j.R, jobspec: j.Jobspec})
	}
	return err
}
