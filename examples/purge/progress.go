package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress is a bar on the terminal that says how far a long step is. It is
// silent where standard error is none, and for what is over at once.
type progress struct {
	w       io.Writer // nil: silent
	what    string
	total   int
	started time.Time
	shown   time.Time
	visible bool
}

const (
	progressEvery = 200 * time.Millisecond
	progressWidth = 30
)

// newProgress returns the bar of a step of total jobs. Only a terminal has one.
func newProgress(stderr io.Writer, what string, total int) *progress {
	p := &progress{what: what, total: total, started: time.Now(), shown: time.Now()}
	if isTerminal(stderr) {
		p.w = stderr
	}
	return p
}

// isTerminal reports whether a stream is a terminal. Null is a device as well,
// and nobody minds.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// show tells how many jobs are done, a few times a second.
func (p *progress) show(done int) {
	if p.w == nil || time.Since(p.shown) < progressEvery {
		return
	}
	p.shown = time.Now()
	p.visible = true
	fmt.Fprint(p.w, "\r\x1b[K"+p.text(done, time.Since(p.started)))
}

// text is the bar after some time.
func (p *progress) text(done int, spent time.Duration) string {
	done = min(max(done, 0), p.total)
	full, percent := progressWidth, 100
	if p.total > 0 {
		full, percent = progressWidth*done/p.total, 100*done/p.total
	}
	bar := strings.Repeat("#", full) + strings.Repeat(".", progressWidth-full)
	return fmt.Sprintf("%s [%s] %3d%% %d of %d jobs, %.0f/s", p.what, bar, percent, done, p.total,
		float64(done)/max(spent.Seconds(), 0.001))
}

// done takes the bar away, so that a message can take its place.
func (p *progress) done() {
	if p.visible {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.visible = false
	}
}
