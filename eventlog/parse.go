package eventlog

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/logline"
)

// Parse returns the entry of one line. The newline at its end may be missing. A line is
// one JSON object as RFC 18 describes it, in any order of keys. White space may be between
// its tokens, except newlines and a carriage return at the end. The limits are the defaults
// of [DecoderOptions].
//
// The Entry aliases line; its Name does not. The error is a *[SyntaxError] with
// Line 1, for an empty line too. Parse allocates for an error, for a name that
// is not of RFC 21 or has escapes, for a number of more than 32 bytes and for a
// context whose objects have many keys.
func Parse(line []byte) (Entry, error) {
	if len(line) > 0 && line[len(line)-1] == '\n' {
		line = line[:len(line)-1]
	}
	p := parser{o: DecoderOptions{}.inForce()}
	var e Entry
	if err := p.line(line, &e); err != nil {
		return Entry{}, err
	}
	return e, nil
}

type parser struct {
	o     DecoderOptions // in force
	names *names
}

// line sets e to the entry that line, without its newline, holds. After an error, e means nothing.
func (p *parser) line(line []byte, e *Entry) *SyntaxError {
	if len(line) > p.o.MaxLine {
		return lineError(p.o.MaxLine)
	}
	if p.usual(line, e) {
		return nil
	}
	return p.unusual(line, e)
}

// usual is the fast path for the form in which every writer puts a line. It reports
// false for any other line, valid or not.
func (p *parser) usual(line []byte, e *Entry) bool {
	l, ok := logline.Cut(line)
	if !ok || !guard.IsTime(l.Time) {
		return false
	}
	e.Timestamp, e.integer = Timestamp(l.Time), l.Integer
	if e.Name, _, ok = logline.Find(&frequent, l.Name); !ok {
		if !logline.IsPlain(l.Name) {
			return false
		}
		e.Name = p.names.intern(l.Name)
	}
	if l.Context == nil {
		return true
	}
	// In the line, for the scanner is faster where more bytes follow.
	end, ok := jsonobj.ValueEnd(line, len(line)-1-len(l.Context), p.o.MaxDepth-1)
	e.Context = l.Context
	return ok && end == len(line)-1
}

// The keys of an event, as bits in their usual order.
const (
	hasTimestamp = 1 << iota
	hasName
	hasContext
)

// unusual is the path for any line: it finds what is wrong, where something is.
func (p *parser) unusual(line []byte, e *Entry) *SyntaxError {
	if err := p.text(line); err != nil {
		return err
	}
	seen := 0
	reorder := false // keys are not in the usual order, or not the usual ones
	doc := jsonobj.NewDoc(line)
	doc.Depth = p.o.MaxDepth
	o := doc.Object()
	for o.Next() {
		bit := p.member(&o, line, e)
		reorder = reorder || bit == 0 || seen >= bit
		seen |= bit
	}
	o.Require("timestamp", "name")
	if doc.Failed() {
		return faultError(doc.Fault())
	}
	if reorder {
		e.line = line[:len(line):len(line)]
	}
	return nil
}

// text returns the error of a line that is wrong before it is JSON.
func (p *parser) text(line []byte) *SyntaxError {
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		return syntaxError(ErrSyntax, i, errInnerNewline)
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return syntaxError(ErrSyntax, n-1, errReturn)
	}
	if len(bytes.Trim(line, " \t\r")) == 0 {
		return syntaxError(ErrSyntax, 0, errEmptyLine)
	}
	return nil
}

// member reads the member of line that o is at and returns which it is, 0 if unknown.
func (p *parser) member(o *jsonobj.Reader, line []byte, e *Entry) int {
	v := o.Value()
	switch string(o.Key()) {
	case "timestamp":
		f, integer, _, ok := jsonobj.FloatAt(v.Raw(), 0)
		e.Timestamp, e.integer = Timestamp(f), 0
		if ok && integer {
			e.integer, ok = jsonobj.Int64(v.Raw())
		}
		if !ok || e.Timestamp.check() != nil {
			if v.Kind() == jsonobj.KindNumber {
				v.Fail(errNotPositive)
			}
			v.Float(0, 0) // fails
		}
		return hasTimestamp
	case "name":
		var ok bool
		if e.Name, _, ok = logline.Find(&frequent, v.TextBytes()); !ok {
			e.Name = p.names.intern(v.TextBytes())
		}
		if err := checkName(e.Name); err != nil {
			v.Fail(err)
		}
		return hasName
	case "context":
		if v.Kind() != jsonobj.KindObject {
			v.Fail(errNotObject)
		}
		// A part of line, not v.Raw(), or the Doc would escape.
		end := v.Offset() + len(v.Raw())
		e.Context = line[v.Offset():end:end]
		return hasContext
	}
	if p.o.StrictKeys {
		v.Fail(errUnknown)
	}
	return 0
}

// checkName returns why an event cannot have a name: a peer in C would read one that ends at U+0000.
func checkName(name string) error {
	switch {
	case name == "":
		return errEmpty
	case strings.IndexByte(name, 0) >= 0:
		return errNUL
	case !utf8.ValidString(name):
		return errNotUTF8
	}
	return nil
}
