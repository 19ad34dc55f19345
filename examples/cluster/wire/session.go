package wire

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Pause waits for a time or the end of ctx, of which it returns the error.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err()
}

// A Peer is a session as a node or a scheduler has it. Nobody acknowledges anything: what is said
// is numbered, and a side that misses something begins another session by a hello.
type Peer struct {
	Epoch   uint64 // of the last manager that it obeys
	Greet   bool   // Begin is to be called
	session string // "": there is none
	ask     string // of the manager, for the hello
	got     uint64 // the last Do
	sent    uint64 // the last Up with news
}

// Restart has another session begin.
func (p *Peer) Restart() { p.session, p.Greet = "", true }

// Open reports whether there is a session.
func (p *Peer) Open() bool { return p.session != "" }

// Beat hears of the active manager.
func (p *Peer) Beat(b Beat) {
	if b.Epoch > p.Epoch || b.Epoch == p.Epoch && p.session == "" && !p.Greet {
		p.Epoch = b.Epoch
		p.Restart()
	}
}

// Do reports whether a Do is the next of the session, and is to be obeyed.
func (p *Peer) Do(d *Do) (next bool, err error) {
	switch {
	case d.Epoch < p.Epoch:
		return false, fmt.Errorf("order of an earlier epoch: %d, and %d is active", d.Epoch, p.Epoch)
	case d.Epoch > p.Epoch || d.Hello && d.Session == p.session:
		p.Epoch, p.ask = d.Epoch, d.Ask
		p.Restart()
	case d.Session != p.session || d.Hello: // of the one before
	case d.Seq == p.got && !d.news():
	case d.Seq != p.got+1 || !d.news():
		p.Restart()
		return false, fmt.Errorf("missed an order: %d came after %d", d.Seq, p.got)
	default:
		p.got = d.Seq
		return true, nil
	}
	return false, nil
}

// Begin begins a session, and returns its hello, to be said.
func (p *Peer) Begin() Up {
	*p = Peer{Epoch: p.Epoch, ask: p.ask, session: rand.Text()}
	return Up{Hello: true, Answer: p.ask}
}

// Says numbers what is said next.
func (p *Peer) Says(u *Up) {
	if !u.Hello && u.news() {
		p.sent++
	}
	u.Epoch, u.Session, u.Seq, u.Got = p.Epoch, p.session, p.sent, p.got
}

func (u *Up) news() bool { return len(u.Tasks) > 0 || u.Lines != "" }
func (d *Do) news() bool { return len(d.Orders) > 0 || d.Lines != "" }

// A Link is a session as the manager has it.
type Link struct {
	Session string // "": there is none
	ask     string // that the next hello has to answer; "": the manager has not asked
	greets  string // the session whose hello comes, of which there are
	parts   int
	in, out uint64 // the last Up and Do
}

// A Said is what an Up says.
type Said int

// What an Up says. Another one is out of order: Ask.
const (
	SaidBeat   Said = iota + 1
	SaidBehind      // a beat of a peer that has not got all: Check
	SaidNews        // a part of a session
	SaidPart        // of a hello that goes on
	SaidHello       // the last part, or all of it
)

// ErrOrder is what Link.Up returns for what is out of order, as after a restart of either side.
var ErrOrder = errors.New("not the next of a session")

// Up tells what an Up is.
func (l *Link) Up(epoch uint64, u *Up) (Said, error) {
	same := u.Epoch == epoch && u.Session == l.Session && u.Session != ""
	switch {
	case u.Epoch == epoch && u.Hello && u.Session != "" && l.ask != "" && u.Answer == l.ask && u.Parts <= MaxParts:
		if u.Session != l.greets {
			l.greets, l.parts = u.Session, 0
		}
		if l.parts++; l.parts < u.Parts {
			return SaidPart, nil
		}
		*l = Link{Session: u.Session, in: u.Seq}
		return SaidHello, nil
	case same && u.Seq == l.in && !u.news():
		if u.Got < l.out {
			return SaidBehind, nil
		}
		return SaidBeat, nil
	case same && u.Seq == l.in+1 && u.news():
		l.in++
		return SaidNews, nil
	}
	return 0, ErrOrder
}

// First reports whether an Up is the first part of a hello.
func (l *Link) First(u *Up) bool { return u.Session != l.greets }

// Says numbers a Do.
func (l *Link) Says(d *Do) {
	l.out++
	d.Session, d.Seq = l.Session, l.out
}

// Check returns a Do without news. It comes after those before, so that the peer knows whether it
// missed one.
func (l *Link) Check() Do { return Do{Session: l.Session, Seq: l.out} }

// Ask ends the session, and returns what asks for another of the peer that is in the session.
// A peer that is in a later one by then ignores it, so that each session is ended once.
func (l *Link) Ask(session string) Do {
	if l.Session = ""; l.ask == "" { // else the answer may be on its way
		l.ask = rand.Text()
	}
	return Do{Hello: true, Session: session, Ask: l.ask}
}
