package attack

import (
	"testing"
)

// A run that fails keeps what made it fail, and loses the rest.
func TestAFailedRunIsMadeShort(t *testing.T) {
	play := func(p *Tape) {
		p.Clock = func() string { return "" }
		for range 100 {
			if p.N(10) == 7 && p.N(10) == 3 {
				p.Say("both")
				p.Fail("seven and three")
			}
		}
	}
	seed := uint64(0)
	for Play(seed, play).Failed == "" {
		seed++
	}
	p := Play(seed, play)
	short := attempt(&Tape{made: shrink(p.made, play), Traced: true}, play)
	if len(p.made) <= 2 || len(short.made) != 2 || short.Failed != "seven and three" || len(short.trace) != 1 {
		t.Errorf("%d choices became %v: %q %q", len(p.made), short.made, short.Failed, short.trace)
	}
	if p := Play(1, func(*Tape) { panic("oh") }); p.Failed[:9] != "panic: oh" {
		t.Errorf("a panic is %q", p.Failed)
	}
}
