package engine

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// A replica of a key that lags behind is no other writer.
func TestAReplicaThatLagsIsNoOtherWriter(t *testing.T) {
	e := &Engine{kv: &lagging{}}
	next, err := e.Update(t.Context(), "drain", []byte("new"), 5)
	require.NoError(t, err)
	require.Equal(t, uint64(6), next)
}

// A lagging bucket has no answer to the first update, and is read as it was before the last.
type lagging struct {
	jetstream.KeyValue
	updates int
}

func (b *lagging) Update(context.Context, string, []byte, uint64) (uint64, error) {
	if b.updates++; b.updates == 1 {
		return 0, nats.ErrTimeout
	}
	return 6, nil
}

func (b *lagging) Get(context.Context, string) (jetstream.KeyValueEntry, error) { return old{}, nil }

type old struct{ jetstream.KeyValueEntry }

func (old) Value() []byte    { return []byte("old") }
func (old) Revision() uint64 { return 4 }
