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
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/examples/internal/unpack"
	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Limits of an input.
const (
	maxLine = 64 << 20  // of JSON lines: one job
	maxLog  = 256 << 20 // of a file that is one log
	maxBad  = 1 << 14   // lines of a file that are no jobs
)

// The first bytes of what readInput knows.
var (
	magicGzip  = []byte{0x1f, 0x8b}
	magicBzip2 = []byte("BZh")
	magicTar   = []byte("ustar")
)

// offsetTar is where a tar archive has its magic.
const offsetTar = 257

// source is where an input comes from.
type source struct {
	name string // for messages
	path string // "" if it is not a file
	file *unpack.File
	bad  int         // lines of it that are no jobs, of the goroutine that prints
	over atomic.Bool // they are too many
}

// maxLayers is how often one compression may stand in another: a file that
// unpacks to itself must come to an end.
const maxLayers = 2

// unpack finds out what r is, and submits the jobs in it.
func (s *session) unpack(src *source, r io.Reader, layers int) error {
	if layers > maxLayers {
		return fmt.Errorf("is compressed more than %d times over", maxLayers)
	}
	br := bufio.NewReaderSize(r, lookAhead)
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
		return s.unpack(src, src.file.Bound(z), layers+1)
	case bytes.HasPrefix(head, magicBzip2):
		return s.unpack(src, src.file.Bound(bzip2.NewReader(br)), layers+1)
	case len(head) >= offsetTar && bytes.HasPrefix(head[offsetTar:], magicTar):
		return s.readArchive(src, br)
	default:
		return s.readText(src, br)
	}
}

// readText reads JSON lines of recorded jobs, or the log of one job: the first
// line says which.
func (s *session) readText(src *source, r *bufio.Reader) error {
	line, err := readLine(r, src.file)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	ahead, _ := r.Peek(lookAhead) // an error comes again
	switch {
	case isRecordings(line, ahead):
		return s.readLines(src, line, r)
	case looksLikeEvent(line) || looksLikeEvent(ahead):
		return s.readLog(src, line, r)
	}
	return errNotKnown
}

// lookAhead is how much of what follows a bad first line may say what a text is.
const lookAhead = 64 << 10

// readLine reads a line with its newline, which the last one may lack. After that it returns
// io.EOF.
func readLine(r *bufio.Reader, f *unpack.File) (line []byte, err error) {
	for more := true; more; {
		var part []byte
		part, err = r.ReadSlice('\n')
		line = append(line, part...)
		switch more = errors.Is(err, bufio.ErrBufferFull); {
		case len(line) > maxLine:
			return nil, errLine
		case more && int64(len(line)) > f.Part():
			return nil, unpack.ErrLong
		}
	}
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = nil
	}
	return line, err
}

// readLines reads JSON lines, of which it gets the first.
func (s *session) readLines(src *source, line []byte, r *bufio.Reader) error {
	for n := 1; !src.over.Load(); n++ {
		text := line
		if !s.submit(len(text), func(out *result) { s.replayLine(src, text, n, out) }) {
			return nil
		}
		var err error
		if line, err = readLine(r, src.file); err != nil {
			return notEnd(err)
		}
	}
	return nil
}

// notEnd returns an error unless it is the end of the input.
func notEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// replayLine replays the job of one line.
func (s *session) replayLine(src *source, line []byte, n int, out *result) {
	in, err := parseRecording(line)
	if err != nil {
		out.faults = append(out.faults, fault{src, n, err})
		return
	}
	if in.noID {
		in.label = fmt.Sprintf("%s:%d", filepath.Base(src.name), n)
	}
	s.replay(src.name, in, out)
}

// isRecordings reports whether a text is JSON lines of recorded jobs: its first
// line has an eventlog, or is bad and a line ahead has one.
func isRecordings(first, ahead []byte) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal(first, &keys) == nil {
		return keys["eventlog"] != nil
	}
	return bytes.Contains(ahead, []byte(`"eventlog":`))
}

// looksLikeEvent reports whether a text may have an event of a log.
func looksLikeEvent(text []byte) bool {
	return bytes.Contains(text, []byte(`"timestamp"`)) && bytes.Contains(text, []byte(`"name"`))
}

// readLog reads the log of one job, of which it gets the first line. Its file or folder may
// have the job's id for a name, and R and jobspec may be beside it, as in the key-value
// store of an instance.
func (s *session) readLog(src *source, log []byte, r *bufio.Reader) error {
	for {
		part, err := r.ReadSlice('\n')
		switch log = append(log, part...); {
		case len(log) > maxLog:
			return fmt.Errorf("is a log longer than %d MiB", maxLog>>20)
		case int64(len(log)) > src.file.Part():
			return unpack.ErrLong
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	in := input{noID: true, label: filepath.Base(src.name), eventlog: log}
	if dir := filepath.Base(filepath.Dir(src.path)); in.label == "eventlog" && filepath.IsLocal(dir) && dir != "." {
		in.label = dir + "/" + in.label // many logs have this name
	}
	if id, ok := idOf(src.path); ok {
		in.id, in.noID = id, false
	}
	if filepath.Base(src.path) == "eventlog" {
		in.r = s.beside(src.path, "R")
		in.jobspec = s.beside(src.path, "jobspec")
	}
	s.submit(len(in.eventlog)+len(in.r)+len(in.jobspec), func(out *result) { s.replay(src.name, in, out) })
	return nil
}

// beside returns the content of a file in the same folder, nil if there is none or it cannot
// be read, which is a fault.
func (s *session) beside(path, name string) (b []byte) {
	path = filepath.Join(filepath.Dir(path), name)
	err := regular(path)
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(f, maxLine)) // what is cut cannot be parsed
		_ = f.Close()                                   // it was only read
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.fault("%v", err)
		return nil
	}
	return b
}

// idOf returns the job id that a file, the folder that it is in, or its last four
// folders (job/0000/0001/ce00/0000/eventlog) have for a name.
func idOf(path string) (jobid.ID, bool) {
	if path == "" {
		return 0, false
	}
	if abs, err := filepath.Abs(path); err == nil { // else the folder that it is in is not known
		path = abs
	}
	parts := strings.Split(filepath.ToSlash(path), "/")
	slices.Reverse(parts)
	parts[0] = strings.TrimSuffix(strings.TrimSuffix(parts[0], ".gz"), ".bz2")
	for _, suffix := range []string{".eventlog", ".log"} {
		parts[0] = strings.TrimSuffix(parts[0], suffix)
	}
	names := parts[:min(2, len(parts))]
	if len(parts) > 4 {
		names = append(slices.Clone(names), parts[4]+"."+parts[3]+"."+parts[2]+"."+parts[1])
	}
	for _, name := range names {
		id, err := jobid.Parse(name)
		if err == nil && strings.TrimSpace(name) == name && looksLikeID(name) {
			return id, true
		}
	}
	return 0, false
}

// looksLikeID reports whether a name that can be read as an id is meant as one:
// "foo" is base 58 too, and 2026 a decimal. Ids have more than nine digits once
// their instance is a minute old.
func looksLikeID(name string) bool {
	switch c := name[0]; {
	case c == 'f':
		return strings.ToLower(name) != name || strings.ContainsAny(name, "0123456789")
	case '0' <= c && c <= '9' && !strings.ContainsAny(name, ".x"):
		return len(name) > 9
	}
	return true
}

// parseRecording reads one line of recorded jobs, which has an id or an eventlog.
// R and jobspec alias it.
func parseRecording(line []byte) (in input, err error) {
	in.noID = true
	err = strict.Members(line, func(key string, value json.RawMessage) error {
		if string(value) == "null" {
			return nil
		}
		switch key {
		case "id":
			if in.noID = false; json.Unmarshal(value, &in.id) != nil {
				return fmt.Errorf("id: want the id of a job, not %.64s", value)
			}
		case "eventlog":
			var log string
			if json.Unmarshal(value, &log) != nil {
				return errors.New("eventlog: want a text")
			}
			in.eventlog = []byte(log)
		case "R":
			in.r = value
		case "jobspec":
			in.jobspec = value
		}
		return nil
	})
	if err == nil && in.noID && in.eventlog == nil {
		err = errNoJob
	}
	return in, err
}

// archiveLimits are for archives of a million jobs, which are some gigabytes
// long: what is kept of each job is its id.
var archiveLimits = archive.Limits{Bytes: 1 << 40, Entries: 1 << 22}

// readArchive reads a dump archive, job by job in its order. A job that is damaged
// is a fault, and the others are told.
func (s *session) readArchive(src *source, r io.Reader) error {
	a, err := archive.Walk(r, archiveLimits, func(j archive.Job) error {
		in := input{id: j.ID, eventlog: j.Eventlog, r: j.R, jobspec: j.Jobspec}
		if !s.submit(len(in.eventlog)+len(in.r)+len(in.jobspec), func(out *result) { s.replay(src.name, in, out) }) {
			return errStopped
		}
		return nil
	})
	if err == errStopped {
		return nil
	}
	for _, failure := range a.Failures {
		s.fault("%s: %v", src.name, failure)
	}
	return err
}
