// Package jsonscan checks JSON text and walks over it in place. It is the one
// JSON scanner of this module: the codecs of events, states and resource sets
// are written on it.
//
// # What it is
//
// [Check] decides whether a text is one JSON value. [Cursor] walks the members
// of an object or the elements of an array and hands out each value as the
// bytes that were read; nothing is decoded that the caller does not ask for.
// [Int64], [Float64], [AppendUnescaped] and the like decode one value, and
// [AppendString], [AppendFloat] and [AppendCompact] write.
//
// The grammar is RFC 8259, read strictly, and as the JSON library of Flux
// (jansson) reads it: what passes here passes there, one case apart, which is
// refused here alone, the first in this list.
//
//   - A key that occurs twice in an object is an error, at every level. Keys
//     are compared unescaped.
//   - Text is valid UTF-8: no overlong forms, no surrogates, no byte order mark.
//   - \u escapes of surrogates come in pairs.
//   - A key holds no U+0000; any other string may, as \u0000.
//   - An integer (no fraction, no exponent) fits in an int64. A real is finite as
//     a float64; one too small to tell from zero is zero.
//   - A value is nested in at most 2047 others, or as [Limits] says.
//
// # Vocabulary
//
// A value is raw while it is the bytes that were read, without white space
// around it. A token is a raw value that is no object and no array. The depth
// of the outermost value is 1, that of a value in it 2.
//
// # Invariants
//
//   - J1: Check accepts a text if and only if a Cursor over it, of its kind,
//     ends without an error; the errors are the same, unless a duplicate is one
//     of them. A Cursor of another kind tells ErrKind if Check accepts.
//   - J2: a text that Check accepts is valid for encoding/json, with the same
//     meaning.
//   - J3: AppendCompact of an accepted text is accepted, means the same and is
//     the same when compacted again.
//   - J4: AppendFloat then Float64, and AppendString then AppendUnescaped, give
//     back what was put in.
//
// # Concurrency and ownership
//
// Functions keep no reference to what they are given, and no state. A Cursor
// aliases its text and belongs to one goroutine; errors alias nothing.
//
// # Cost and limits
//
// One pass, no recursion, no allocation while the objects that are open at one
// place have at most 16 keys together (8, for the object that a Cursor walks)
// and at most 8 values are nested; beyond, memory grows with keys and depth,
// within the size of the text. Duplicates among many keys are found by sorting:
// n keys cost O(n log n) comparisons whatever they hold. The length of the
// text is the caller's to limit.
package jsonscan
