package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate/jobid"
)

// ErrNoReader is returned when no reader runs.
var ErrNoReader = errors.New("no reader runs: cluster reader starts one, if the records are in JetStream")

// archiveTime is how long a job that is over may not be in the archive yet.
const archiveTime = 2 * time.Second

// History returns jobs that are over, the last one first: those of r, and of this user unless it
// is the owner. The error may be ErrNoReader.
func (c *Client) History(ctx context.Context, r wire.Request) ([]wire.JobInfo, error) {
	answer, err := c.read(ctx, wire.VerbHistory, r)
	return answer.Jobs, err
}

// Archived returns a job that is over, with its eventlog. The error may be ErrNoReader.
func (c *Client) Archived(ctx context.Context, id jobid.ID) (wire.JobInfo, error) {
	for began := time.Now(); ; {
		answer, err := c.read(ctx, wire.VerbArchived, wire.Request{ID: id})
		switch {
		case err == nil && len(answer.Jobs) == 1:
			return answer.Jobs[0], nil
		case !answer.Retry || time.Since(began) > archiveTime:
			return wire.JobInfo{}, cmp.Or(err, errLacks)
		}
		if wire.Pause(ctx, 20*time.Millisecond) != nil {
			return wire.JobInfo{}, err
		}
	}
}

// read asks a reader, and another one if the first does not answer.
func (c *Client) read(ctx context.Context, verb string, r wire.Request) (answer wire.Answer, err error) {
	r.Protocol = wire.Protocol
	text, err := wire.Marshal(r)
	if err != nil {
		return answer, err
	}
	for range 2 {
		try, cancel := context.WithTimeout(ctx, tryTime/2)
		m, err := c.conn.RequestWithContext(try, c.instance.Subject("req", c.uid, wire.ReaderVerb, verb), text)
		cancel()
		if final := c.final(err, text); final != nil {
			return answer, final
		}
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return answer, ErrNoReader
		case err == nil:
			if err = json.Unmarshal(m.Data, &answer); err == nil && answer.Error != "" {
				err = fmt.Errorf("%w: %s", ErrRefused, answer.Error)
			}
			return answer, err
		}
	}
	return answer, fmt.Errorf("cluster: a reader does not answer: %w", context.DeadlineExceeded)
}
