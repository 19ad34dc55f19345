package jsonobj

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/guard"
)

// A defect is why a scan stopped. It is no error, so that nothing is built while all is well.
type defect uint8

const (
	noDefect        defect = iota
	defectEnd              // the text ends inside a value
	defectByte             // a byte that can not stand here
	defectControl          // a control character in a string
	defectUTF8             // a string is not UTF-8
	defectEscape           // an escape that is not one of JSON's
	defectSurrogate        // half of a pair
	defectRange            // a number out of range
	defectDepth            // nested too deep
	defectDuplicate        // the key that begins here occurred before
	defectNUL              // U+0000 in the key that begins here
	defectTrailing         // more text after the value
	defectBOM              // a byte order mark
)

func syntaxFault(b []byte, i int, f defect) *Fault {
	return &Fault{Offset: i, Err: f.cause(b, i), from: ErrSyntax}
}

// cause returns the error that stands for f, with a copy of what it quotes.
func (f defect) cause(b []byte, i int) error {
	switch f {
	case defectEnd:
		return errors.New("unexpected end")
	case defectByte:
		return fmt.Errorf("unexpected byte %q", guard.Clip(b[i:i+1]))
	case defectControl:
		return fmt.Errorf("control character %q in a string", guard.Clip(b[i:i+1]))
	case defectUTF8:
		return fmt.Errorf("invalid UTF-8: byte %q in a string", guard.Clip(b[i:i+1]))
	case defectEscape:
		return errors.New("unknown escape in a string")
	case defectSurrogate:
		return errors.New("invalid UTF-8: escape of half a surrogate pair")
	case defectRange:
		end, _, _ := scanNumberForm(b, i)
		return fmt.Errorf("number out of range: %q", guard.Clip(b[i:end]))
	case defectDepth:
		return ErrDepth
	case defectDuplicate:
		return fmt.Errorf("duplicate key %q", guard.Clip(unescaped(nil, b, i)))
	case defectNUL:
		return errors.New("U+0000 in a key")
	case defectTrailing:
		return fmt.Errorf("text after the value: byte %q", guard.Clip(b[i:i+1]))
	case defectBOM:
		return errors.New("byte order mark")
	}
	return fmt.Errorf("defect %d", uint8(f))
}
