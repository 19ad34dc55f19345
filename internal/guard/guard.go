// Package guard has what several packages need to keep their promises: NoCopy
// for types that must not be copied, Clip and Quote for texts from outside in
// errors.
package guard

import "strconv"

// MaxQuoted is how many bytes of a text from outside an error repeats.
const MaxQuoted = 64

// NoCopy makes go vet report copies of a type that has it as a field.
type NoCopy struct{}

// Lock is what go vet looks for.
func (*NoCopy) Lock() {}

// Unlock is what go vet looks for.
func (*NoCopy) Unlock() {}

// Clip returns a copy of the first MaxQuoted bytes of s.
func Clip[T string | []byte](s T) string { return string([]byte(s[:min(len(s), MaxQuoted)])) }

// Quote returns the first MaxQuoted bytes of s as a quoted Go string, which has
// neither newlines nor invalid UTF-8.
func Quote[T string | []byte](s T) string { return strconv.Quote(string(s[:min(len(s), MaxQuoted)])) }
