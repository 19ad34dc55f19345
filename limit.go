package joblife

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
)

// What is stored has to fit in a line of a log as a [Record], with its frame.
const (
	maxData   = eventlog.DefaultMaxLine - 4<<10
	maxDepth  = eventlog.DefaultMaxDepth - 8
	maxNote   = 4 << 10 // bytes of what a user, a peer or a hook says in words
	lineFrame = 64      // of an event: more than what its line has beside name and context
	// maxUpdated is how many bytes of jobspecs a restart reads to update one: it reads
	// the whole of it each time.
	maxUpdated = 64 << 20
)

// fits returns why data, beside more bytes, cannot be stored. Data is JSON, or no JSON at
// all, which others find out.
func fits(what string, data []byte, more int) error {
	if n := len(data) + more; n > maxData {
		return fmt.Errorf("%w: %s of %d bytes, at most %d are stored", ErrLimit, what, n, maxData)
	}
	if len(data) <= maxDepth || bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= maxDepth {
		return nil
	}
	if err := jsonobj.Check(data, maxDepth); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrLimit, what, err)
	}
	return nil
}

func fitsEntry(e eventlog.Entry) error { return fits("event", e.Context, 6*len(e.Name)) } // a byte may need six

// sanitizeNote makes a note of words from outside.
func sanitizeNote(s string) string {
	if len(s) > maxNote {
		s = s[:maxNote]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// plain returns words from outside for an error that has them in quotes of its own, or none.
func plain(s string) string {
	q := guard.Quote(s)
	return q[1 : len(q)-1]
}
