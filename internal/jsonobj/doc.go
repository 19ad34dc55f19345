// Package jsonobj checks, reads and writes JSON. This module has no other scanner, so that
// the same fault reads the same in every format.
//
// A [Doc] is one text and the first fault that was found in it; a [Reader] walks an object
// or an array of it:
//
//	d := jsonobj.NewDoc(text)
//	o := d.Object()
//	for o.Next() {
//		switch string(o.Key()) {
//		case "userid":
//			v.UserID = uint32(o.Int(0, math.MaxUint32))
//		case "ranks":
//			v.Ranks = jsonobj.Parse(o.Value(), idset.Parse)
//		}
//	}
//	o.Require("userid", "ranks")
//	err := d.Err()
//
// The first fault stays in the Doc: all its Readers end there, and what is read after it is
// zero. A [Fault] names the path of the value, its offset and the cause. A [Value] may be
// read later, while its Doc lives; an absent one is zero.
//
// A [Writer] appends an object, compact and in valid UTF-8. A [Protocol] reads and writes
// messages and their lines. [Check] decides whether a text is one JSON value.
//
// # Grammar
//
// It is RFC 8259, read as the JSON library of Flux (jansson) reads it, but for the first rule:
//
//   - A key that appears twice in an object is an error, at every level, compared unescaped.
//   - Text is valid UTF-8: no overlong forms, no surrogates, no byte order mark.
//   - \u escapes of surrogates come in pairs.
//   - A key holds no U+0000; another string may, as \u0000.
//   - An integer (no fraction, no exponent) fits in an int64. A real is finite as a float64;
//     one too small to tell from zero is zero.
//   - A value is nested in at most 2047 others, or as a depth says.
//
// # Ownership, cost and limits
//
// Values and Readers alias the text; faults alias nothing. A Doc belongs to one goroutine.
//
// A text costs one pass, without recursion, and an object in it one more when it is read.
// Small texts allocate results and keys with escapes; of others, memory grows with keys,
// depth and 16 bytes for each object or array. The caller limits the length of the text.
package jsonobj
