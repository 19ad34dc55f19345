package eventlog

import (
	"bytes"
	"iter"
)

// Entries returns an iterator over the entries of a whole log, which may be empty. The
// iterator ends after the first error, which comes with a zero Entry and is a
// *[SyntaxError]: for a line that [Parse] would refuse, or [ErrTorn] for text after the
// last newline. The limits are the defaults of [DecoderOptions].
//
// The entries alias log, their names do not. Do not change log while you use them.
// Each loop starts again at the first entry. An entry allocates as in Parse, but for a
// recent name.
func Entries(log []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) { entries(log, yield) }
}

// entries is the body of Entries, which so can be inlined: then a loop over it allocates nothing.
func entries(log []byte, yield func(Entry, error) bool) {
	var n names
	p := parser{o: DecoderOptions{}.inForce(), names: &n}
	for line, start := 1, 0; start < len(log); line++ {
		rest := log[start:]
		size := bytes.IndexByte(rest, '\n')
		var err *SyntaxError
		var e Entry
		switch {
		case size >= 0:
			err = p.line(rest[:size], &e)
		case len(rest) > p.o.MaxLine:
			err = lineError(p.o.MaxLine)
		default:
			err = syntaxError(ErrTorn, 0, ErrTorn)
		}
		if err != nil {
			yield(Entry{}, err.at(line, int64(start)))
			return
		}
		if !yield(e, nil) {
			return
		}
		start += size + 1
	}
}
