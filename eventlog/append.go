package eventlog

import (
	"bytes"
	"strconv"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/logline"
)

// AppendEntry appends e as one line of a log, newline included: the keys
// timestamp, name and, unless e.Context is empty, context, without white space
// between them. The Context is appended as it is; if it has a newline,
// AppendEntry removes all white space between its tokens.
//
// The keys of an Entry that was read are written in the order in which they were read,
// unknown ones included. A timestamp that was read as an integer is written as one, unless
// the caller set it. So a line that Flux wrote comes out with the same bytes.
//
// It refuses what [Parse] would refuse, and then returns dst as it was. The error wraps
// [ErrEntry], or [ErrLimit] for a line longer than [DefaultMaxLine] or nested deeper than
// [DefaultMaxDepth]. AppendEntry allocates only to grow dst, and for unusual lines as
// Parse does. It retains nothing of e.
func AppendEntry(dst []byte, e Entry) ([]byte, error) {
	if err := e.check(); err != nil {
		return dst, err
	}
	out := dst
	if e.line != nil {
		var err error
		if out, err = e.appendAsRead(out); err != nil {
			return dst, err
		}
	} else {
		out = e.appendTimestamp(append(out, logline.BeforeTime...))
		out = e.appendName(append(out, `,"name":`...))
		if len(e.Context) > 0 {
			out = e.appendContext(append(out, `,"context":`...))
		}
		out = append(out, '}')
	}
	if len(out)-len(dst) > DefaultMaxLine {
		return dst, refuse(ErrLimit, "entry", tooLong(DefaultMaxLine))
	}
	return append(out, '\n'), nil
}

func (e *Entry) check() error {
	if err := e.Timestamp.check(); err != nil {
		return refuse(ErrEntry, "timestamp", err)
	}
	if !logline.IsPlain(e.Name) {
		if err := checkName(e.Name); err != nil {
			return refuse(ErrEntry, "name", err)
		}
	}
	return e.checkContext()
}

func (e *Entry) checkContext() error {
	if len(e.Context) == 0 {
		return nil
	}
	const within = DefaultMaxDepth - 1
	if e.Context[0] == '{' {
		if end, ok := jsonobj.ValueEnd(e.Context, 0, within); ok && end == len(e.Context) {
			return nil
		}
	}
	if err := jsonobj.Check(e.Context, within); err != nil {
		return refuseJSON("context", err)
	}
	if jsonobj.KindOf(e.Context) != jsonobj.KindObject {
		return refuse(ErrEntry, "context", errNotObject)
	}
	return nil
}

// appendTimestamp appends an integer if the timestamp was read as one.
func (e *Entry) appendTimestamp(dst []byte) []byte {
	if e.integer != 0 && Timestamp(e.integer) == e.Timestamp {
		return strconv.AppendInt(dst, e.integer, 10)
	}
	return jsonobj.AppendFloat(dst, float64(e.Timestamp))
}

func (e *Entry) appendName(dst []byte) []byte {
	if logline.IsPlain(e.Name) {
		return append(append(append(dst, '"'), e.Name...), '"')
	}
	return jsonobj.AppendString(dst, e.Name)
}

// appendContext appends the context, which was checked: a newline in it is white space.
func (e *Entry) appendContext(dst []byte) []byte {
	raw := e.Context
	if bytes.IndexByte(raw, '\n') >= 0 {
		return jsonobj.AppendCompact(dst, raw)
	}
	if raw[0] != '{' || raw[len(raw)-1] != '}' {
		raw = bytes.Trim(raw, " \t\r")
	}
	return append(dst, raw...)
}

// appendAsRead appends e with the keys of e.line, in their order. A context that was not
// read comes last.
func (e *Entry) appendAsRead(dst []byte) ([]byte, error) {
	separator := byte('{')
	wrote := 0
	doc := jsonobj.NewDoc(e.line)
	for o := doc.Object(); o.Next(); {
		switch string(o.Key()) {
		case "timestamp":
			dst = e.appendTimestamp(append(append(dst, separator), `"timestamp":`...))
			wrote |= hasTimestamp
		case "name":
			dst = e.appendName(append(append(dst, separator), `"name":`...))
			wrote |= hasName
		case "context":
			if len(e.Context) == 0 {
				continue
			}
			dst = e.appendContext(append(append(dst, separator), `"context":`...))
			wrote |= hasContext
		default:
			// The key unescaped and escaped anew, the value as it was read.
			dst = jsonobj.AppendString(append(dst, separator), string(o.Key()))
			dst = append(append(dst, ':'), o.Value().Raw()...)
		}
		separator = ','
	}
	if doc.Failed() {
		return dst, refuseJSON("entry", doc.Fault())
	}
	if wrote&hasTimestamp == 0 || wrote&hasName == 0 {
		return dst, refuse(ErrEntry, "entry", errChanged)
	}
	if wrote&hasContext == 0 && len(e.Context) > 0 {
		dst = e.appendContext(append(dst, `,"context":`...))
	}
	return append(dst, '}'), nil
}
