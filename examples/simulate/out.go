package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/joblife/joblife/jobstate"
)

// An output is a file that the command writes when all is over.
type output struct {
	name  string
	write func(io.Writer) error
}

// outputs returns the files that were asked for.
func (s *study) outputs() (list []output) {
	add := func(name string, write func(io.Writer) error) {
		if name != "" {
			list = append(list, output{name, write})
		}
	}
	add(s.o.html, s.page)
	add(s.o.csv, s.writeCSV)
	add(s.o.json, s.writeJSON)
	if s.o.swfOut != "" {
		for _, w := range []way{wholeJob, partialRelease} {
			add(filepath.Join(s.o.swfOut, w.file()+".swf"), func(out io.Writer) error { return s.writeSWF(out, s.runs[0][w]) })
		}
	}
	return list
}

// writable returns what prevents a file from being written. It changes nothing. It leaves a pipe
// alone: opening waits for its reader, which takes the closing for the end.
func writable(name string) error {
	if info, err := os.Stat(name); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return nil
	}
	_, stat := os.Lstat(name)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	err = f.Close()
	if errors.Is(stat, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// save writes the files, each whatever becomes of the others. The error is the first.
func (s *study) save() (err error) {
	files := s.outputs()
	if s.o.svg != "" {
		for _, f := range s.figures() {
			files = append(files, output{filepath.Join(s.o.svg, f.Name+".svg"), func(w io.Writer) error {
				_, err := w.Write(f.svg(wide, true))
				return err
			}})
		}
	}
	for _, f := range files {
		err = cmp.Or(err, f.save())
	}
	return err
}

// save writes a file as a whole or, after an error, in part. It does not read, as [os.Create]
// would: a pipe that the writer reads too never says that its reader has gone.
func (f output) save() error {
	file, err := os.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(file)
	if err = f.write(b); err == nil {
		err = b.Flush()
	}
	return errors.Join(err, file.Close())
}

// columns are what is said of a job in the CSV and the JSON. Nodes are by cores where jobs
// share them. Times are in seconds since the first submission. A job that did not start has no times of a run.
var columns = []string{"seed", "release", "id", "user", "nodes", "submit", "start", "end", "free", "idle_node_seconds", "result", "counts"}

// rows yields a row for each job of each run, until yield fails.
func (s *study) rows(yield func([]any) error) error {
	for _, p := range s.runs {
		for w, c := range p {
			for id := 1; id < len(c.jobs); id++ {
				if err := yield(c.row(way(w), id)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *cluster) row(w way, id int) []any {
	j := &c.jobs[id]
	var start, end, free any
	if j.ran {
		start, end, free = j.began, j.ended, j.free
	}
	return []any{c.seed, w.file(), id, j.user, c.nodesOf(j.size), j.submit, start, end, free, float64(j.idle) / float64(c.units), j.result.String(), c.counts(j.submit)}
}

func (s *study) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	texts := make([]string, len(columns))
	err := s.rows(func(row []any) error {
		for i, v := range row {
			switch v := v.(type) {
			case nil:
				texts[i] = ""
			case float64:
				texts[i] = plain(v)
			default:
				texts[i] = fmt.Sprint(v)
			}
		}
		return out.Write(texts)
	})
	if out.Flush(); err == nil {
		err = out.Error()
	}
	return err
}

// writeJSON writes an array, with an object a line.
func (s *study) writeJSON(w io.Writer) error {
	next := "[\n{"
	err := s.rows(func(row []any) error {
		for i, v := range row {
			text, err := json.Marshal(v)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s%q: %s", next, columns[i], text); err != nil {
				return err
			}
			next = ", "
		}
		next = "},\n{"
		return nil
	})
	if err == nil {
		_, err = io.WriteString(w, "}\n]\n")
	}
	return err
}

// writeSWF writes what became of the jobs of a run as a log in the Standard Workload Format,
// which -swf reads. Processors are cores. A job that did not start has no runtime.
func (s *study) writeSWF(w io.Writer, c *cluster) error {
	_, err := fmt.Fprintf(w, "; Version: 2.2\n; Note: %s\n; MaxJobs: %d\n; MaxNodes: %d\n; MaxProcs: %d\n; UnixStartTime: 0\n",
		s.title(), len(c.jobs)-1, len(c.nodes), len(c.nodes)*s.o.cores)
	for i := range c.jobs[1:] {
		j := &c.jobs[i+1]
		wait, run, status := seconds(-1), seconds(-1), 0
		if j.ran {
			wait, run = j.began-j.submit, j.ended-j.began
		}
		if j.result == jobstate.ResultCompleted {
			status = 1
		}
		procs := j.size * s.o.cores / c.units
		if err == nil {
			_, err = fmt.Fprintf(w, "%d %d %d %d %d -1 -1 %d %d -1 %d %d -1 -1 -1 -1 -1 -1\n",
				i+1, j.submit, wait, run, procs, procs, j.limit, status, j.user)
		}
	}
	return err
}
