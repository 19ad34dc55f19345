// Package jsonscan checks JSON text and walks over it in place. It is the one JSON
// scanner of this module. Package jsonobj reads and writes objects on top of it.
//
//	c := jsonscan.Object(text)
//	for c.Next() {
//		switch string(c.Key()) {
//		case "name":
//			name, ok = jsonscan.String(c.Raw())
//		}
//	}
//	if err := c.Err(); err != nil {
//		return err // jsonscan: offset 40: duplicate key "name"
//	}
//
// [Check] decides whether a text is one JSON value. A [Cursor] hands out values as
// the bytes that were read. A [Tape] spares a second scan of what is in them: a
// [Walk] goes over it. [Int64], [Float64], [AppendUnescaped] and the like
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
// Functions keep no reference to what they are given. A Cursor aliases its text
// and belongs to one goroutine; errors alias nothing.
//
// A text costs one pass, without recursion. Nothing is allocated while the objects
// that are open at one place have at most 16 keys together (8, for the object that
// a Cursor walks), at most 8 values are nested and at most 24 objects and arrays are
// on a Tape. Beyond, memory grows with keys, depth and the Tape, within a small
// multiple of the text. Duplicates among many keys are found by
// sorting: n keys cost O(n log n) comparisons whatever they hold. The caller
// limits the length of the text.
package jsonscan
