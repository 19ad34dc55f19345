// Package client asks the roles of a cluster as a user.
package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A Client asks as a user. Any goroutine may use it.
type Client struct {
	conn     *nats.Conn
	instance wire.Instance
	uid      uint32
}

// Open connects as a user. An option has its credential.
func Open(url string, i wire.Instance, uid uint32, options ...nats.Option) (*Client, error) {
	conn, err := nats.Connect(url, append([]nats.Option{
		nats.Name(fmt.Sprint("user ", uid)), nats.CustomInboxPrefix(wire.Inbox(uid)), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond),
	}, options...)...)
	if err == nil {
		if err = conn.FlushTimeout(tryTime); err != nil { // how much a user may send follows the first answer
			conn.Close()
		}
	}
	switch {
	case errors.Is(err, nats.ErrNoServers):
		return nil, fmt.Errorf("cluster: %s: %w: is it up? cluster up starts one here", url, err)
	case errors.Is(err, nats.ErrAuthorization):
		return nil, fmt.Errorf("cluster: %s: %w: is it the server of this folder? name another with -dir", url, err)
	case err != nil:
		return nil, fmt.Errorf("cluster: %s: %w", url, err)
	}
	return &Client{conn, i, uid}, nil
}

// Close ends the connection.
func (c *Client) Close() { c.conn.Close() }

// ErrRefused is returned when the cluster refuses a request. The text says why.
var ErrRefused = errors.New("refused")

// errLacks is returned when an answer is none: it may be forged.
var errLacks = errors.New("cluster: an answer lacks what was asked for")

// Ask asks for a verb, until there is an answer or ctx ends. A cancel and an urgency are repeated
// only if nobody received them, or if a manager says that it did not live to answer. A submission
// without a key gets one, so that it is one job however often it is repeated. What is longer than a
// user may send is an error at once, and so is a connection that was closed for good.
func (c *Client) Ask(ctx context.Context, verb string, r wire.Request) (wire.Answer, error) {
	r.Protocol = wire.Protocol
	if verb == "submit" && r.Key == "" {
		r.Key = rand.Text() // the request may be repeated
	}
	var answer wire.Answer
	err := c.request(ctx, c.instance.Subject("req", c.uid, verb), verb != "cancel" && verb != "urgency", r, &answer)
	for err == nil && answer.Retry && ctx.Err() == nil {
		_ = wire.Pause(ctx, 50*time.Millisecond) // the next try tells of the end
		answer = wire.Answer{}
		err = c.request(ctx, c.instance.Subject("req", c.uid, verb), true, r, &answer)
	}
	switch {
	case err != nil:
	case answer.Error != "":
		err = fmt.Errorf("%w: %s", ErrRefused, answer.Error)
	case verb == "job" && len(answer.Jobs) == 0, verb == "status" && answer.Status == nil:
		err = errLacks
	}
	return answer, err
}

// tryTime is how long an answer may take before it is asked for again, perhaps of another
// manager.
const tryTime = 5 * time.Second

func (c *Client) request(ctx context.Context, subject string, repeat bool, r, answer any) error {
	text, err := wire.Marshal(r)
	if err != nil {
		return err
	}
	for {
		try, cancel := context.WithTimeout(ctx, tryTime)
		m, err := c.conn.RequestWithContext(try, subject, text)
		cancel()
		if final := c.final(err, text); final != nil {
			return final
		}
		switch {
		case err == nil:
			return json.Unmarshal(m.Data, answer)
		case ctx.Err() != nil && errors.Is(err, nats.ErrNoResponders):
			return fmt.Errorf("cluster: nobody answers on %s: there is no active manager, or it does not serve this instance", subject)
		case ctx.Err() != nil:
			return fmt.Errorf("cluster: %w", err)
		case !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, nats.ErrReconnectBufExceeded) && !repeat:
			return fmt.Errorf("cluster: no answer: whether the request counts is not known: %w", err)
		}
		_ = wire.Pause(ctx, 50*time.Millisecond) // the next try tells of the end
	}
}

// final returns an error of a request that no repeated one mends, or nil.
func (c *Client) final(err error, request []byte) error {
	last := c.conn.LastError()
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("cluster: %w: the request has %d bytes, and a user may send %d: shorten the jobspec, such as its environment, or the note", err, len(request), c.conn.MaxPayload())
	case errors.Is(err, nats.ErrConnectionClosed) && last != nil:
		return fmt.Errorf("cluster: %w by the server: %w: if the credential has expired, the owner of the instance makes another with cluster user add %d", err, last, c.uid)
	case errors.Is(err, nats.ErrConnectionClosed):
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// Job returns a job.
func (c *Client) Job(ctx context.Context, id jobid.ID) (wire.JobInfo, error) {
	answer, err := c.Ask(ctx, "job", wire.Request{ID: id})
	if err != nil {
		return wire.JobInfo{}, err
	}
	return answer.Jobs[0], nil
}

// Wait waits until a job is over, and returns it.
func (c *Client) Wait(ctx context.Context, id jobid.ID) (wire.JobInfo, error) {
	if _, err := c.Ask(ctx, "wait", wire.Request{ID: id}); err != nil {
		return wire.JobInfo{}, err
	}
	return c.Job(ctx, id)
}

// silence is how long a node may not answer when a job is over: it may be lost.
const silence = 2 * tryTime

// Output copies the output of a job on a node, until the job has ended there. The end of over says
// that the job is over: then a node that does not answer for ten seconds is an error. An over of
// nil is not to follow the job: Output ends where there is no more.
func (c *Client) Output(ctx context.Context, id jobid.ID, rank uint32, over context.Context, w io.Writer) error {
	for r := (wire.OutputRequest{ID: id}); ; {
		var out wire.Output
		err := c.output(ctx, rank, over, r, &out)
		if err == nil && out.Error != "" {
			err = fmt.Errorf("%w: %s", ErrRefused, out.Error)
		}
		if err == nil {
			_, err = w.Write(out.Data)
		}
		if err != nil || out.End || len(out.Data) == 0 && over == nil {
			return err
		}
		r.Offset += int64(len(out.Data))
		if len(out.Data) == 0 {
			if err := wire.Pause(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
	}
}

// output asks a node for a part of the output of a job.
func (c *Client) output(ctx context.Context, rank uint32, over context.Context, r wire.OutputRequest, out *wire.Output) error {
	try, cancel := context.WithCancel(ctx)
	defer cancel()
	if over != nil {
		defer context.AfterFunc(over, func() {
			select {
			case <-try.Done():
			case <-time.After(silence):
				cancel()
			}
		})()
	}
	err := c.request(try, c.instance.Subject("req", c.uid, "output", rank), true, r, out)
	if err != nil && ctx.Err() == nil && try.Err() != nil {
		err = fmt.Errorf("cluster: no output of rank %d: the job is over, and the node does not answer", rank)
	}
	return err
}

// perByte is how much later a job is asked for again for each byte of its log, since an answer counts
// by that: one follower has about 20 answers a second, however long the log is.
const perByte = 3 * time.Microsecond

// Started waits until a job has started or has ended, and returns it.
func (c *Client) Started(ctx context.Context, id jobid.ID) (wire.JobInfo, error) {
	for {
		job, err := c.Job(ctx, id)
		if err != nil || job.Started || job.Result != "" {
			return job, err
		}
		if err := wire.Pause(ctx, 50*time.Millisecond+time.Duration(len(job.Eventlog))*perByte); err != nil {
			return job, err
		}
	}
}

// Watch calls f with the lines of events of jobs of this user, live, until ctx ends. A job of 0
// means all.
func (c *Client) Watch(ctx context.Context, id jobid.ID, f func(id jobid.ID, line []byte)) error {
	sub, err := c.conn.SubscribeSync(c.instance.Subject("event", c.uid))
	if err != nil {
		return cmp.Or(c.final(err, nil), err)
	}
	defer sub.Unsubscribe()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return cmp.Or(c.final(err, nil), err)
		}
		for of, line := range wire.Events(m.Data) {
			if id == 0 || of == id {
				f(of, line)
			}
		}
	}
}
