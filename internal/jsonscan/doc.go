// Package jsonscan checks JSON text and walks over it in place. It is the one JSON
// scanner of this module. Package jsonobj reads and writes objects on top of it.
//
//	if err := jsonscan.Check(text, jsonscan.Limits{}); err != nil {
//		return err // jsonscan: offset 40: duplicate key "name"
//	}
//
// [Check] decides whether a text is one JSON value. A [Tape] notes what is where while
// a text is checked, and a [Walk] goes over an object or an array of it. [Int64],
// [Float64], [AppendUnescaped] and the like
// decode one value; [AppendString], [AppendFloat] and [AppendCompact] write.
//
// The grammar is RFC 8259, read as the JSON library of Flux (jansson) reads it:
// what passes here passes there.
//
//   - A key that appears twice in an object is an error, at every level. Keys are
//     compared unescaped. Only this rule is stricter than jansson's default.
//   - Text is valid UTF-8: no overlong forms, no surrogates, no byte order mark.
//   - \u escapes of surrogates come in pairs.
//   - A key holds no U+0000; another string may, as \u0000.
//   - An integer (no fraction, no exponent) fits in an int64. A real is finite as
//     a float64; one too small to tell from zero is zero.
//   - A value is nested in at most 2047 others, or as [Limits] says.
//
// # Vocabulary
//
// A value is raw while it is the bytes that were read, without white space around
// it. A token is a raw value that is not an object or an array. The depth of the
// outermost value is 1.
//
// # Ownership, cost and limits
//
// Functions keep no reference to what they are given; errors alias nothing.
//
// A text costs one pass, without recursion. Nothing is allocated while the objects
// that are open at one place have at most 16 keys together, at most 8 values are
// nested and at most 24 objects and arrays are on a Tape. Beyond, memory grows with
// keys, depth and the Tape, within a small multiple of the text. Duplicates among
// many keys are found by sorting: n keys cost O(n log n) comparisons whatever they
// hold. The caller limits the length of the text.
package jsonscan
