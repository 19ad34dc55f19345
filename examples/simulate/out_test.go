package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
)

// The program reads the log that it writes, and gets the same workload of it.
func TestTheWrittenTraceIsReadAgain(t *testing.T) {
	for _, share := range []string{"-share=false", "-share"} {
		t.Run(share, func(t *testing.T) { requireReadAgain(t, share) })
	}
}

func requireReadAgain(t *testing.T, share string) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-nodes", "32", "-cores", "8", "-seeds", "1", "-policy", "fifo", "-fail", "0.1", share}
	s, _ := page(t, append(args, "-jobs", "200")...)
	s.o.html, s.o.swfOut = "", dir
	require.NoError(t, s.save())
	for i, c := range s.runs[0] {
		name := filepath.Join(dir, way(i).file()+".swf")
		read, err := openTrace(name)
		require.NoError(t, err)
		require.Empty(t, read.skipped)
		require.Equal(t, []int{32, 32 * 8}, []int{read.nodes, read.procs})
		work, err := s.workload(1)
		require.NoError(t, err)
		require.Equal(t, work, fromTrace(read, s.o))

		again, _ := page(t, "-swf", name, "-seeds", "1", "-policy", "fifo", share)
		require.Equal(t, 8, again.o.cores)
		for id := range c.jobs {
			require.Equal(t, c.jobs[id].began, again.runs[0][i].jobs[id].began)
		}
	}
}

// The rows say what the table says, and CSV and JSON agree.
func TestRowsOfJobs(t *testing.T) {
	for _, share := range []string{"-share=false", "-share"} {
		t.Run(share, func(t *testing.T) { requireRows(t, share) })
	}
}

func requireRows(t *testing.T, share string) {
	t.Helper()
	dir := t.TempDir()
	s, _ := page(t, "-jobs", "100", "-nodes", "16", "-seeds", "2", "-mtbf", "3d", "-straggle", "0.05", share)
	s.o.csv, s.o.json, s.o.html, s.o.swfOut = filepath.Join(dir, "x.csv"), filepath.Join(dir, "x.json"), "", dir
	require.NoError(t, s.save())
	text, err := os.ReadFile(s.o.csv)
	require.NoError(t, err)
	table, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, columns, table[0])
	require.Len(t, table[1:], 2*2*100)
	text, err = os.ReadFile(s.o.json)
	require.NoError(t, err)
	var objects []map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&objects))
	require.Len(t, objects, 2*2*100)

	log, err := openTrace(filepath.Join(dir, "whole.swf"))
	require.NoError(t, err)
	ran := log.jobs

	var idle, slowdowns float64
	var waits []float64
	for i, o := range objects {
		for k, name := range columns {
			if o[name] == nil {
				o[name] = ""
			}
			require.Equal(t, table[1+i][k], fmt.Sprint(o[name]))
		}
		number := func(name string) float64 { x, _ := o[name].(json.Number).Float64(); return x }
		if o["release"] != "whole" || o["seed"] != json.Number("1") || o["start"] == "" {
			continue
		}
		run := number("end") - number("start") // a node may have failed
		require.EqualValues(t, run, ran[0].run)
		ran = ran[1:]
		if o["counts"] != true {
			continue
		}
		waits = append(waits, number("start")-number("submit"))
		idle += number("idle_node_seconds")
		slowdowns += max(1, (number("start")-number("submit")+run)/max(run, 10))
		require.LessOrEqual(t, number("end"), number("free"))
	}
	c := s.runs[0][wholeJob]
	jobs := c.counted(1, maxNodes)
	require.InDelta(t, worth[0].of(c, jobs), mean(waits), 1e-6)
	slices.Sort(waits)
	p95 := worth[1].of(c, jobs)
	require.True(t, waits[len(waits)*93/100] <= p95 && p95 <= waits[len(waits)*97/100], p95)
	span := 0.8 * float64(c.jobs[len(c.jobs)-1].submit) // without warm-up and drain
	require.InEpsilon(t, worth[2].of(c, jobs), idle/span*hoursAWeek, 1e-3)
	require.InDelta(t, mean(each(jobs, (*job).slowdown)), slowdowns/float64(len(jobs)), 1e-6)
	require.Contains(t, string(text), `"result": "FAILED"`)
}

// An int has 32 bits on some machines.
func TestTheRowOfAJobThatHeldMuchForLong(t *testing.T) {
	c := &cluster{jobs: make([]job, 2), metrics: metrics{units: 2}}
	c.jobs[1] = job{arrival: new(arrival), idle: 1 << 34}
	require.Equal(t, 8589934592.0, c.row(wholeJob, 1)[slices.Index(columns, "idle_node_seconds")])
}

// A reader of -csv /dev/stdout that goes away, such as head, is an error and no wait.
func TestAPipeThatNobodyReads(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it needs /dev/fd")
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	f := output{fmt.Sprintf("/dev/fd/%d", w.Fd()), func(to io.Writer) error {
		_, err := to.Write(make([]byte, 1<<20))
		return err
	}}
	require.NoError(t, writable(f.name))
	saved := make(chan error, 1)
	go func() { saved <- f.save() }()
	_, err = io.ReadFull(r, make([]byte, 10))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	select {
	case err := <-saved:
		require.ErrorContains(t, err, "broken pipe")
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a reader")
	}
}

// A table that nobody gets costs no file.
func TestFilesAreWrittenIfTheTableIsNot(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.csv")
	var stderr bytes.Buffer
	status := run(context.Background(), []string{"-jobs", "2", "-seeds", "1", "-html", "", "-csv", name}, deaf{}, &stderr)
	require.Equal(t, lines.ExitFault, status)
	require.Equal(t, "simulate: nobody listens\n", stderr.String())
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, 1+2*2, strings.Count(string(text), "\n"))
}

// A trace has perhaps other names.
func TestNoOutputGoesOverTheTrace(t *testing.T) {
	dir := t.TempDir()
	trace, link := filepath.Join(dir, "x.swf"), filepath.Join(dir, "x.csv")
	require.NoError(t, os.WriteFile(trace, []byte(sampleTrace), 0o666))
	require.NoError(t, os.Link(trace, link))
	status, _, errs := command(t, "-swf", trace, "-html", "", "-seeds", "1", "-csv", link)
	require.Equal(t, lines.ExitUsage, status)
	require.Contains(t, errs, "x.csv: give it a name of its own")
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	require.Equal(t, sampleTrace, string(text))
}

// Nor does one go over another.
func TestNoOutputGoesOverAnother(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "x.csv"), filepath.Join(dir, "x.json")
	require.NoError(t, os.WriteFile(name, nil, 0o666))
	require.NoError(t, os.Link(name, link))
	status, _, errs := command(t, "-html", "", "-jobs", "1", "-seeds", "1", "-csv", name, "-json", link)
	require.Equal(t, lines.ExitUsage, status)
	require.Contains(t, errs, "two outputs would be written to "+link+": give each a name of its own")
}

// One that cannot be written costs no other.
func TestFilesAreWrittenIfOneIsNot(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it needs /dev/full")
	}
	dir := t.TempDir()
	status, _, errs := command(t, "-jobs", "2", "-seeds", "1", "-html", "/dev/full", "-swf-out", dir)
	require.Equal(t, lines.ExitFault, status)
	require.Equal(t, "simulate: write /dev/full: no space left on device\n", errs)
	require.FileExists(t, filepath.Join(dir, "partial.swf"))
}

// Nor is one found out after the runs.
func TestNothingRunsForAPlotThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "waits.svg"), 0o777))
	status, out, errs := command(t, "-jobs", "2", "-seeds", "1", "-html", "", "-svg", dir)
	require.Equal(t, lines.ExitFault, status)
	require.Contains(t, errs, "waits.svg: is a directory")
	require.Empty(t, out)
	require.NoError(t, os.Rename(filepath.Join(dir, "waits.svg"), filepath.Join(dir, "slow.svg")))
	good(t, "-jobs", "2", "-seeds", "1", "-html", "", "-svg", dir) // that of -sweep
}

func TestNoFolderIsMadeForATraceThatCannotBeRead(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, out := range []string{"-svg", "-log", "-swf-out"} {
		status, _, errs := command(t, "-swf", "LOG", out, "new")
		require.Equal(t, lines.ExitFault, status)
		require.Contains(t, errs, "open LOG: ")
		require.NoDirExists(t, "new", out)
	}
}

type deaf struct{}

func (deaf) Write([]byte) (int, error) { return 0, errors.New("nobody listens") }
