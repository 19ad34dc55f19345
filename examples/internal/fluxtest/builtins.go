package fluxtest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
)

// SetAttr sets an attribute of the broker.
func (b *Broker) SetAttr(name, value string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attrs[name] = value
}

// SetConfig sets what config.get answers, a JSON object, and tells those who follow it.
func (b *Broker) SetConfig(text string) {
	b.mu.Lock()
	b.config = text
	readers := slices.Clone(b.readers)
	b.mu.Unlock()
	for _, f := range readers {
		f(text)
	}
}

// SetState moves the broker to a state, and tells those who follow it.
func (b *Broker) SetState(s flux.State) {
	b.mu.Lock()
	b.state = s
	followed := slices.Clone(b.followed)
	b.mu.Unlock()
	for _, f := range followed {
		f(s)
	}
}

// Log returns the entries of the log so far.
func (b *Broker) Log() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}

// builtins registers the services of a broker. A test can put others in their place.
func (b *Broker) builtins() {
	b.Serve("attr.get", func(q flux.Message, answer func(flux.Message)) {
		var in struct{ Name string }
		decode(&q, &in)
		b.mu.Lock()
		value, ok := b.attrs[in.Name]
		b.mu.Unlock()
		if !ok {
			answer(q.RespondError(errno.NoEntry, ""))
			return
		}
		text, _ := json.Marshal(map[string]any{"value": value, "flags": 0})
		answer(q.Respond(flux.Text(text)))
	})
	b.Serve("config.get", func(q flux.Message, answer func(flux.Message)) {
		tell := func(text string) { answer(q.Respond(flux.Text(text))) }
		b.mu.Lock()
		text := b.config
		if q.Flags.Has(flux.FlagStreaming) {
			b.readers = append(b.readers, tell)
		}
		b.mu.Unlock()
		tell(text)
	})
	b.Serve("log.append", func(q flux.Message, _ func(flux.Message)) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.log = append(b.log, string(q.Payload))
	})
	b.Serve("state-machine.monitor", b.monitor)
}

func (b *Broker) monitor(q flux.Message, answer func(flux.Message)) {
	follow := func(s flux.State) {
		answer(q.Respond(flux.Text(fmt.Sprintf(`{"state":%d}`, s))))
		if s == flux.StateExit && q.Flags.Has(flux.FlagStreaming) {
			answer(q.RespondError(errno.NoData, ""))
		}
	}
	b.mu.Lock()
	state := b.state
	if q.Flags.Has(flux.FlagStreaming) {
		b.followed = append(b.followed, follow)
	}
	b.mu.Unlock()
	follow(state)
}

// decode decodes the payload of a request, and reports whether it could.
func decode(q *flux.Message, in any) bool {
	text, err := q.JSON()
	return err == nil && json.Unmarshal(text, in) == nil
}
