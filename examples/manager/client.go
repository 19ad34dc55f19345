package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/lines"
)

// A client is a connection, or standard input and output, which has the id 0. Many senders
// may speak on it.
type client struct {
	id        int
	out       io.Writer
	put       func(output)        // in place of out
	receive   func(*flux.Message) // in place of lines
	broken    func(error)         // to call when a Write failed
	calm      func(func()) bool   // see lines.Outbox; nil: it waits for who reads
	close     func()              // ends the connection after what was written
	spoke     bool                // more than a hello of its own
	scheduler bool                // it was accepted as one, and is no bridge to one
	executor  bool                // the same
}

// key returns what the service calls a sender. Those of two clients differ. On standard
// input a line without a sender may be anyone's: its key is "".
func (c *client) key(sender *string) string {
	switch {
	case sender == nil && c.id == 0:
		return ""
	case sender == nil:
		return strconv.Itoa(c.id)
	}
	return strconv.Itoa(c.id) + ":" + *sender
}

// owns reports whether a key is of one of the client's senders.
func (c *client) owns(key string) bool {
	number, _, _ := strings.Cut(key, ":")
	return number == strconv.Itoa(c.id)
}

// An input is a line of a client. The first of a client has neither text nor error. One of
// no client tells that something failed or is odd, that the process has to end, or that time has
// passed.
type input struct {
	client *client
	line   lines.Line
	flux   *flux.Message // in place of a line
	odd    error
	quit   bool
}

// read gives the lines of a client to put, and the error at their end. It goes on
// until then, or until ctx is done.
func (c *client) read(ctx context.Context, r io.Reader, room *lines.Budget, put func(input) bool) {
	in := lines.Read(ctx, r, lines.Max, room)
	for {
		var l lines.Line
		select {
		case <-ctx.Done():
			return
		case l = <-in:
		}
		var long *lines.LongError
		if !put(input{client: c, line: l}) || l.Err != nil && !errors.As(l.Err, &long) {
			return
		}
	}
}
