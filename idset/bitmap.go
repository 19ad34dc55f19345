package idset

import "github.com/RoaringBitmap/roaring/v2"

// What this file knows of roaring v2.30.0, beyond its documentation:
//
//   - Ids are kept by containers of 65536. One that lists ids or holds words
//     takes up to 8 KiB, and AddRange makes one for every 65536 ids.
//   - AddRange copies a container that lists ids, so that building a bitmap
//     range by range is quadratic; FromDense is not.
//   - A container of runs stays one, however many runs it gets.
//   - NextAbsentValue is wrong: it loses the upper bits of an id, and stops at
//     ends of words and containers though the run goes on.
//   - Intersects allocates where AndCardinality does not.
//   - Bitmaps share nothing as long as copy-on-write stays off.

const (
	containerBits = 16
	containerMask = 1<<containerBits - 1

	// containerBytes is about what a container costs beside its payload: a
	// header, and its places in the three slices of the bitmap.
	containerBytes = 100

	// denseBytes is the payload of a container of words; one that lists ids
	// takes two bytes for each and no more than that.
	denseBytes = 8192
)

// all is the run of every id that there is.
var all = run{0, MaxID}

// estimate returns about how many bytes bitmapOf(rs, clip) takes. Its cost follows
// runs.
func estimate(rs []run, clip run) int {
	total, key, parts, ids := 0, uint32(0), 0, 0
	add := func(k uint32, n int) {
		if k != key {
			total += containerCost(parts, ids)
			key, parts, ids = k, 0, 0
		}
		parts++
		ids += n
	}
	for _, r := range overlapping(rs, clip) {
		r = run{max(r.first, clip.first), min(r.last, clip.last)}
		k, end := r.first>>containerBits, r.last>>containerBits
		if k == end {
			add(k, int(r.last-r.first)+1)
			continue
		}
		add(k, containerMask-int(r.first&containerMask)+1)
		add(end, int(r.last&containerMask)+1)
		total += int(end-k-1) * containerCost(1, containerMask+1)
	}
	return total + containerCost(parts, ids)
}

// containerCost returns about how many bytes a container takes that holds so
// many ids in so many runs.
func containerCost(runs, ids int) int {
	switch runs {
	case 0:
		return 0
	case 1:
		return containerBytes + min(2*ids, 4)
	default:
		return containerBytes + min(2*ids, denseBytes)
	}
}

// bitmapOf returns a bitmap of those ids of rs that are in clip. Its cost follows
// runs and containers.
func bitmapOf(rs []run, clip run) *roaring.Bitmap {
	b := builder{out: roaring.New(), runs: make([]run, 0, collected)}
	for _, r := range overlapping(rs, clip) {
		r = run{max(r.first, clip.first), min(r.last, clip.last)}
		k, end := r.first>>containerBits, r.last>>containerBits
		if k == end {
			b.add(k, r)
			continue
		}
		b.add(k, run{r.first, r.first | containerMask})
		if end > k+1 {
			b.flush()
			b.out.AddRange(uint64(k+1)<<containerBits, uint64(end)<<containerBits)
		}
		b.add(end, run{r.last &^ containerMask, r.last})
	}
	b.flush()
	b.merge()
	return b.done
}

// A builder fills a bitmap container by container. What it holds itself does
// not grow with the number of runs.
type builder struct {
	done  *roaring.Bitmap // nil at first
	out   *roaring.Bitmap // above done
	ors   int             // parts that were added to out
	key   uint32          // of the container that is being filled
	ids   int             // in it
	runs  []run           // in it, but those that are in words
	words []uint64
	full  bool // words is used
}

const (
	wordBits = 64

	// collected is the number of runs that wait for the end of their
	// container; with more, it is filled as words.
	collected = 64

	// listed is the number of ids up to which a container without words is
	// filled id by id.
	listed = 512

	// batch is the number of parts after which out is added to done. Or goes
	// over the containers below its argument, so that without batches many
	// containers would cost the square of their number.
	batch = 256
)

// add adds a run of the container with the given key, which is not below that
// of the call before.
func (b *builder) add(key uint32, r run) {
	if key != b.key {
		b.flush()
		b.key = key
	}
	if len(b.runs) == collected {
		b.pour()
	}
	b.runs = append(b.runs, r)
	b.ids += int(r.len())
}

// flush adds what was collected to the bitmap.
func (b *builder) flush() {
	switch {
	case b.full || len(b.runs) > 1 && b.ids > listed:
		b.pour()
		part := roaring.FromDense(b.words, true)
		if b.key > 0 {
			part = roaring.AddOffset64(part, int64(b.key)<<containerBits)
		}
		if b.out.IsEmpty() {
			b.out = part
		} else {
			b.out.Or(part)
		}
		if b.ors++; b.ors == batch {
			b.merge()
		}
		clear(b.words)
		b.full = false
	case len(b.runs) == 1:
		b.out.AddRange(uint64(b.runs[0].first), uint64(b.runs[0].last)+1)
	case len(b.runs) > 1:
		list := make([]uint32, 0, listed)
		for _, r := range b.runs {
			for id := r.first; id <= r.last; id++ {
				list = append(list, id)
			}
		}
		b.out.AddMany(list)
	}
	b.runs, b.ids = b.runs[:0], 0
}

// merge adds out to done.
func (b *builder) merge() {
	if b.done == nil {
		b.done = b.out
	} else {
		b.done.Or(b.out)
	}
	b.out, b.ors = roaring.New(), 0
}

// pour moves the runs that wait into words.
func (b *builder) pour() {
	if b.words == nil {
		b.words = make([]uint64, (containerMask+1)/wordBits)
	}
	for _, r := range b.runs {
		setWords(b.words, r.first&containerMask, r.last&containerMask)
	}
	b.runs, b.full = b.runs[:0], true
}

// setWords sets the bits from first to last, both included.
func setWords(words []uint64, first, last uint32) {
	i, end := first/wordBits, last/wordBits
	head := ^uint64(0) << (first % wordBits)
	tail := ^uint64(0) >> (wordBits - 1 - last%wordBits)
	if i == end {
		words[i] |= head & tail
		return
	}
	words[i] |= head
	for i++; i < end; i++ {
		words[i] = ^uint64(0)
	}
	words[end] |= tail
}

// appendBits appends the runs of a bitmap to dst, which is empty.
func appendBits(dst []run, bits *roaring.Bitmap) []run {
	for first, end := range bits.Ranges() {
		dst = append(dst, run{first, uint32(end - 1)})
	}
	return dst
}

// countBits returns the number of runs in a bitmap, or limit+1 if there are
// more than limit.
func countBits(bits *roaring.Bitmap, limit int) int {
	n := 0
	for range bits.Ranges() {
		if n++; n > limit {
			break
		}
	}
	return n
}

// bitsIn returns how many ids of r are in a bitmap.
func bitsIn(bits *roaring.Bitmap, r run) uint64 {
	return bits.CardinalityInRange(uint64(r.first), uint64(r.last)+1)
}

// nextBit returns the smallest id of a bitmap that is not below id.
func nextBit(bits *roaring.Bitmap, id uint32) (uint32, bool) {
	v := bits.NextValue(id)
	return uint32(v), v >= 0
}

// prevBit returns the largest id of a bitmap that is not above id.
func prevBit(bits *roaring.Bitmap, id uint32) (uint32, bool) {
	v := bits.PreviousValue(id)
	return uint32(v), v >= 0
}

// endOfRun returns the last id of the run of a bitmap that holds id. It gallops:
// the steps double as long as all ids up to there are present, then halve.
func endOfRun(bits *roaring.Bitmap, id uint32) uint32 {
	ahead := true
	for step := uint32(1); step > 0 && id < MaxID; {
		r := run{id + 1, min(id+step, MaxID)}
		if bitsIn(bits, r) == r.len() {
			id = r.last
		} else {
			ahead = false
		}
		if ahead {
			step *= 2
		} else {
			step /= 2
		}
	}
	return id
}

// bitmapBytes returns about how many bytes a bitmap takes. Containers of very
// many runs are repacked on the way.
func bitmapBytes(bits *roaring.Bitmap) int {
	s := bits.Stats()
	if s.RunContainerBytes > denseBytes/2*s.RunContainers {
		bits.RunOptimize()
		s = bits.Stats()
	}
	return int(s.ArrayContainerBytes+s.BitmapContainerBytes+s.RunContainerBytes) + int(s.Containers)*containerBytes
}
