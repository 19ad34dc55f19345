package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/perilog/exec"
)

// A node says hello twice to a manager that is new to it, and once or twice more for each message
// that is lost, however slow either side is and of however many parts a hello is.
func TestASessionCostsFewHellos(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const epoch = 3
		var (
			node          wire.Peer
			link          wire.Link
			up            []wire.Up
			down          []wire.Do
			hellos, drops int
			parts         = rapid.IntRange(1, 12).Draw(t, "parts")
		)
		say := func(u wire.Up) {
			node.Says(&u)
			up = append(up, u)
		}
		obey := func() {
			d := down[0]
			down = down[1:]
			_, _ = node.Do(&d)
		}
		greet := func() {
			if !node.Greet {
				return
			}
			hellos++
			u := node.Begin()
			for u.Parts = parts; len(up) < 1<<16; {
				say(u)
				if parts--; parts == 0 {
					break
				}
			}
			parts = u.Parts
		}
		hear := func() {
			u := up[0]
			up = up[1:]
			said, err := link.Up(epoch, &u)
			switch {
			case err != nil:
				down = append(down, link.Ask(u.Session))
				down[len(down)-1].Epoch = epoch
			case said == wire.SaidBehind:
				down = append(down, link.Check())
				down[len(down)-1].Epoch = epoch
			case said == wire.SaidHello || said == wire.SaidNews:
				d := wire.Do{Epoch: epoch, Orders: []wire.Order{{}}}
				link.Says(&d)
				down = append(down, d)
			}
		}
		beat := func() {
			if node.Open() {
				say(wire.Up{})
			}
		}
		acts := map[string]func(*rapid.T){
			"manager's beat": func(*rapid.T) { node.Beat(wire.Beat{Epoch: epoch}) },
			"greet":          func(*rapid.T) { greet() },
			"beat":           func(*rapid.T) { beat() },
			"news": func(*rapid.T) {
				if node.Open() {
					say(wire.Up{Tasks: make([]exec.TaskStatus, 1)})
				}
			},
			"hear": func(*rapid.T) {
				for n := rapid.IntRange(1, 20).Draw(t, "n"); n > 0 && len(up) > 0; n-- {
					hear()
				}
			},
			"obey": func(*rapid.T) {
				if len(down) > 0 {
					obey()
				}
			},
			"": func(*rapid.T) { require.LessOrEqual(t, hellos, 2+2*drops) },
		}
		if rapid.Bool().Draw(t, "lossy") {
			acts["drop up"] = func(*rapid.T) {
				if len(up) > 0 {
					up, drops = up[1:], drops+1
				}
			}
			acts["drop down"] = func(*rapid.T) {
				if len(down) > 0 {
					down, drops = down[1:], drops+1
				}
			}
		}
		t.Repeat(acts)
		node.Beat(wire.Beat{Epoch: epoch})
		for range 6 { // each side sees by the other's beat what it missed
			greet()
			beat()
			for len(up) > 0 {
				hear()
			}
			for len(down) > 0 {
				obey()
			}
		}
		require.True(t, node.Open())
		require.NotEmpty(t, link.Session)
		require.LessOrEqual(t, hellos, 2+2*drops)
		beat()
		said, err := link.Up(epoch, &up[0])
		require.NoError(t, err, "both have one session")
		require.Equal(t, wire.SaidBeat, said, "and nothing is missing")
		require.Equal(t, link.Check().Seq, up[0].Got)
	})
}
