// Package guard has what several packages need to keep their promises: NoCopy for
// types that must not be copied, IsTime for the times of events, Clip, Cut, Quote and Plain for
// texts from outside in errors, Cause for the causes of errors, Duration for seconds
// from outside, Name for the words of constants, Noise for what keeps room on a disk.
package guard

import (
	"errors"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// MaxQuoted is how many bytes of a text from outside an error repeats.
const MaxQuoted = 64

// NoCopy makes go vet report copies of a type that has it as a field.
type NoCopy struct{}

// Lock is what go vet looks for.
func (*NoCopy) Lock() {}

// Unlock is what go vet looks for.
func (*NoCopy) Unlock() {}

// IsTime reports whether an event can have that time: it is after 0 and finite.
func IsTime[T ~float64](t T) bool { return t > 0 && t <= math.MaxFloat64 }

// Clip returns a copy of the first MaxQuoted bytes of s, or some fewer as Cut does.
func Clip[T string | []byte](s T) string {
	return Cut(string([]byte(s[:min(len(s), MaxQuoted+1)])), MaxQuoted)
}

// Cut returns the first n bytes of s, or some fewer: it cuts no character of valid UTF-8.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := n; i > max(0, n-utf8.UTFMax); i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n]
}

// Quote returns the first MaxQuoted bytes of s as a quoted Go string: one line, valid UTF-8.
func Quote[T string | []byte](s T) string { return strconv.Quote(string(s[:min(len(s), MaxQuoted)])) }

// Plain is Quote without the quotes.
func Plain(s string) string {
	q := Quote(s)
	return q[1 : len(q)-1]
}

// Name returns the name of a constant that counts from 1, and kind(n) of a value without one.
func Name[T ~uint8](kind string, n T, names ...string) string {
	if n == 0 || int(n) > len(names) || names[n-1] == "" {
		return kind + "(" + strconv.Itoa(int(n)) + ")"
	}
	return names[n-1]
}

// Duration returns a number of seconds, 0 or more, rounded to a nanosecond. It is
// at least one unless seconds is zero, and at most the longest time.Duration.
func Duration(seconds float64) time.Duration {
	const longest = math.MaxInt64 // nanoseconds
	if seconds < longest/1_000_000_000+1 {
		// Each part is exact; together they need more than 53 bits.
		whole, part := math.Modf(seconds)
		ns := uint64(whole)*1_000_000_000 + uint64(math.Round(part*1e9))
		if ns == 0 && seconds > 0 {
			ns = 1
		}
		return time.Duration(min(ns, longest))
	}
	return longest
}

// A cause is an error of a category, without the category's text, which is around it.
type cause struct{ category, err error }

func (c *cause) Error() string   { return c.err.Error() }
func (c *cause) Unwrap() []error { return []error{c.category, c.err} }

// Cause returns an error with a text that wraps a category.
func Cause(category error, text string) error { return Wrap(category, errors.New(text)) }

// Wrap returns an error with the text of err that wraps a category too.
func Wrap(category, err error) error { return &cause{category, err} }

// Noise returns n bytes that take their room also where a file system compresses.
func Noise(n int) []byte {
	data := make([]byte, n)
	state := uint32(1)
	for i := range data {
		state = state*1664525 + 1013904223
		data[i] = byte(state >> 24)
	}
	return data
}
