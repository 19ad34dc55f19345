package jobstate

import (
	"encoding/binary"
	"math/bits"

	"github.com/joblife/joblife/eventlog"
)

// entryMark tells an entry from the next one. Of the context and of an unknown name it has a
// checksum of 56 bits: the next entry passes for a repetition by chance once in 2^56 pairs of
// one time and kind. A writer of contexts can aim for that, with two entries of one time, and
// only has the second ignored. The mark is in no record. No entry has the zero mark.
type entryMark struct {
	time eventlog.Timestamp
	sum  uint64 // the kind is its lowest byte
}

// markOf returns the mark of an entry.
func markOf(ev *Event) entryMark {
	e := &ev.entry
	var h uint64
	if ev.kind == kUnknown {
		h = checksum(0, []byte(e.Name))
	}
	if len(e.Context) > 0 {
		h = checksum(h, e.Context)
	}
	return entryMark{time: e.Timestamp, sum: h<<8 | uint64(ev.kind)}
}

// checksum continues the sum h with a text and its length, eight bytes a step. FNV and CRC-64 of
// the standard library take one byte a step, ten times as long.
func checksum(h uint64, b []byte) uint64 {
	h ^= uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		h = fold(h ^ binary.LittleEndian.Uint64(b))
	}
	var last [8]byte
	copy(last[:], b)
	return fold(h ^ binary.LittleEndian.Uint64(last[:]))
}

// fold spreads each bit of x over the result.
func fold(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)
	return hi ^ lo
}
