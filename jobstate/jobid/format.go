package jobid

import "strconv"

// Format is a form that an id can be printed in. The zero value is FormatF58.
type Format uint8

// The forms of an id, with the id 6731191091817518 as an example.
const (
	FormatF58      Format = iota // ƒuZZybuNNy: base 58, the main form
	FormatF58Plain               // fuZZybuNNy: base 58 with an ASCII prefix
	FormatDec                    // 6731191091817518
	FormatHex                    // 0x17e9fb8df16c2e
	FormatDotHex                 // 0017.e9fb.8df1.6c2e

	formatKVS // job.0017.e9fb.8df1.6c2e: KVSPath has it
)

// What comes before the digits of an id.
const (
	prefixF58   = "ƒ" // U+0192
	prefixPlain = "f"
	prefixHex   = "0x"
	prefixKVS   = "job."
)

// alphabet is base 58: digits and letters without 0, I, O and l.
const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// maxText is the length of the longest text, that of KVSPath.
const maxText = len(prefixKVS) + 16 + 3

// AppendFormat appends id in the form f to dst. It does not allocate if dst has room for
// 23 bytes. Panics if f is not one of the constants of this package.
func (id ID) AppendFormat(dst []byte, f Format) []byte {
	switch f {
	case FormatF58:
		return id.appendBase58(append(dst, prefixF58...))
	case FormatF58Plain:
		return id.appendBase58(append(dst, prefixPlain...))
	case FormatDec:
		return strconv.AppendUint(dst, uint64(id), 10)
	case FormatHex:
		return strconv.AppendUint(append(dst, prefixHex...), uint64(id), 16)
	case FormatDotHex:
		return id.appendDotHex(dst)
	case formatKVS:
		return id.appendDotHex(append(dst, prefixKVS...))
	}
	panic("jobid: unknown Format(" + strconv.Itoa(int(f)) + ")")
}

// appendBase58 appends the digits of id; 0 is "1".
func (id ID) appendBase58(dst []byte) []byte {
	var digits [11]byte // 58^11 > 2^64
	i := len(digits) - 1
	for ; id >= 58; id /= 58 {
		digits[i] = alphabet[id%58]
		i--
	}
	digits[i] = alphabet[id]
	return append(dst, digits[i:]...)
}

// appendDotHex appends sixteen digits in four groups.
func (id ID) appendDotHex(dst []byte) []byte {
	const hex = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hex[uint64(id)>>shift&0xf])
		if shift%16 == 0 && shift > 0 {
			dst = append(dst, '.')
		}
	}
	return dst
}

// Format returns id in the form f. Panics if f is not one of the constants of this package.
func (id ID) Format(f Format) string {
	return string(id.AppendFormat(make([]byte, 0, maxText), f))
}

// String returns id as F58, such as "ƒuZZybuNNy".
func (id ID) String() string { return id.Format(FormatF58) }

// KVSPath returns the key under which Flux stores the job, such as "job.0017.e9fb.8df1.6c2e".
func (id ID) KVSPath() string { return id.Format(formatKVS) }

// AppendText appends id as F58. The error is always nil.
func (id ID) AppendText(dst []byte) ([]byte, error) { return id.AppendFormat(dst, FormatF58), nil }

// MarshalText returns id as F58. The error is always nil. Inside JSON only the
// keys of a map have this form: see [ID.MarshalJSON].
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(make([]byte, 0, maxText)) }

// MarshalJSON returns id as a JSON number, as Flux writes ids in every message
// and stored object. The error is always nil.
//
// A reader that holds all JSON numbers as float64 loses ids beyond 2^53.
func (id ID) MarshalJSON() ([]byte, error) {
	return id.AppendFormat(make([]byte, 0, maxText), FormatDec), nil
}
