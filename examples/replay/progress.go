package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// progress is a line on the terminal that says how far a long input is. It is
// silent if standard error is not a terminal, and for what is over at once.
type progress struct {
	w       io.Writer // nil: silent
	started time.Time
	shown   time.Time
	bytes   atomic.Int64 // counted by the goroutine that reads
	jobs    int
	visible bool
}

const progressEvery = 200 * time.Millisecond

func newProgress(stderr io.Writer) *progress {
	p := &progress{started: time.Now(), shown: time.Now()}
	if f, ok := stderr.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.w = stderr
		}
	}
	return p
}

// count returns r, counting what is read from it.
func (p *progress) count(r io.Reader) io.Reader { return &countingReader{r, p} }

type countingReader struct {
	r io.Reader
	p *progress
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.p.bytes.Add(int64(n))
	return n, err
}

func (p *progress) job() {
	p.jobs++
	if p.jobs%64 == 0 {
		p.show()
	}
}

func (p *progress) show() {
	if p.w == nil || time.Since(p.shown) < progressEvery {
		return
	}
	p.shown = time.Now()
	p.visible = true
	rate := float64(p.jobs) / time.Since(p.started).Seconds()
	fmt.Fprintf(p.w, "\r\x1b[Kreplay: %d jobs, %.1f MB read, %.0f jobs/s", p.jobs, float64(p.bytes.Load())/1e6, rate)
}

// clear takes the line away, so that a message can take its place.
func (p *progress) clear() {
	if p.visible {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.visible = false
	}
}
