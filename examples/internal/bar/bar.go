// Package bar shows how far a program is.
package bar

import (
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"golang.org/x/term"
)

// Start shows a progress bar if w is a terminal. Step adds to what is done, from any
// goroutine, and stop ends the bar.
func Start(w io.Writer, what string, total int) (step func(int), stop func()) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func(int) {}, func() {}
	}
	p, ended := progress.NewWriter(), make(chan bool)
	p.SetOutputWriter(w)
	p.SetAutoStop(true)
	p.SetUpdateFrequency(100 * time.Millisecond)
	tracker := &progress.Tracker{Message: what, Total: int64(total)}
	p.AppendTracker(tracker)
	go func() {
		p.Render()
		close(ended)
	}()
	return func(n int) { tracker.Increment(int64(n)) }, func() {
		tracker.MarkAsDone()
		<-ended
	}
}
