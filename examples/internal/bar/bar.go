// Package bar shows on a terminal how far a program is.
package bar

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// A Line is a line that says how far a program is. It is silent where there is no terminal,
// and for what is over at once. Any goroutine may use it.
type Line struct {
	w    io.Writer // nil: silent
	text func(passed time.Duration) string

	mu             sync.Mutex
	started, shown time.Time
	visible        bool
}

// every is how often a Line changes at most.
const every = 200 * time.Millisecond

// New returns a Line on w with a text, which may depend on the time since now.
func New(w io.Writer, text func(passed time.Duration) string) *Line {
	l := &Line{text: text, started: time.Now(), shown: time.Now()}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		l.w = w
	}
	return l
}

// Show shows the text, unless it has just done so. What a narrow terminal has no room for is cut off:
// on a second row it would stay.
func (l *Line) Show() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w != nil && time.Since(l.shown) >= every {
		l.shown, l.visible = time.Now(), true
		fmt.Fprintf(l.w, "\r\x1b[K\x1b[?7l%s\x1b[?7h", l.text(time.Since(l.started)))
	}
}

// Clear takes the line away, so that a message can take its place.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.visible {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.visible = false
	}
}

// Start shows how much of a total is done, and how long the rest takes. Step adds to what is
// done, from any goroutine, and stop takes the line away.
func Start(w io.Writer, what string, total int) (step func(int), stop func()) {
	var done atomic.Int64
	l := New(w, func(passed time.Duration) string {
		n := done.Load()
		left := time.Duration(float64(passed) / float64(max(1, n)) * float64(int64(total)-n))
		return fmt.Sprintf("%s: %d of %d, %v left", what, n, total, left.Round(time.Second))
	})
	return func(n int) { done.Add(int64(n)); l.Show() }, l.Clear
}
