// Package jsonobj reads and writes JSON objects of known keys. It is the one
// reader and the one writer of objects in this module, on top of package
// jsonscan, so that the same fault reads the same in every format.
//
// A [Doc] is one text and the first fault that was found in it; a [Reader]
// walks an object or an array of it:
//
//	d := jsonobj.NewDoc(text, jsonscan.Limits{})
//	o := d.Object()
//	for o.Next() {
//		switch string(o.Key()) {
//		case "userid":
//			v.UserID = uint32(o.Int(0, math.MaxUint32))
//		case "ranks":
//			v.Ranks = jsonobj.Parse(o.Value(), idset.Parse)
//		default:
//			v.Extra = o.Keep(v.Extra)
//		}
//	}
//	o.Require("userid", "ranks")
//	if err := d.Err(); err != nil {
//		return fmt.Errorf("release: %w", err)
//	}
//
// Nothing returns an error on the way. The first fault stays in the Doc: all
// its Readers end there, and what is read after it is zero. A [Fault] names the
// path of the value, its offset and the cause.
//
// A [Value] may be kept and read later, while its Doc lives. An absent Value
// reads as zero, without a fault.
//
// A [Writer] appends an object: compact, its texts valid UTF-8, with what
// Keep kept. [Writer.End] reads the object back and returns the fault of that,
// so that what would not be read is not written.
//
// A [Protocol] reads and writes messages, and the lines that carry them.
//
// # Ownership and cost
//
// Values and Readers alias the text. A Doc belongs to one goroutine. Docs,
// Readers and Writers stay on the caller's stack: reading allocates what it
// returns, keys with escapes, what jsonscan does for objects of many keys, and
// up to 16 bytes for each object or array in the text beyond the first 24. A path is
// worked out only for a fault.
//
// A text costs one pass, which checks it. An object in it costs its own keys and
// tokens once more when it is read, and nothing for what is in those in it.
package jsonobj
