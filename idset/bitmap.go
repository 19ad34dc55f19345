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

	containerBytes = 100  // about what a container costs beside its payload
	denseBytes     = 8192 // the payload of words; a list takes two bytes an id and no more
)

// all is the run of every id that there is.
var all = run{0, MaxID}

// containersOf calls f, in ascending order, with the containers that the ids of rs in
// clip need, and the runs in them: a window is within one container, or it is several whole
// ones within one run.
func containersOf(rs []run, clip run, f func(window run, in []run)) {
	for from := clip.first; from <= clip.last; {
		rs = rs[search(rs, from):]
		if len(rs) == 0 || rs[0].first > clip.last {
			return
		}
		first, last := max(from, rs[0].first), min(rs[0].last, clip.last)
		window, n := run{first, min(first|containerMask, clip.last)}, 1
		if whole := (last + 1) &^ containerMask; first&containerMask == 0 && whole > first {
			window.last = whole - 1
		} else {
			for n < len(rs) && rs[n].first <= window.last {
				n++
			}
		}
		f(window, rs[:n])
		from = window.last + 1
	}
}

// countWithin returns how many ids runs have in a window, or as many as fill a container.
func countWithin(window run, in []run) int {
	ids := 0
	for _, r := range in {
		ids += int(min(r.within(window).len(), containerMask+1))
	}
	return ids
}

// estimate returns about how many bytes bitmapOf(rs, clip) takes. Its cost follows runs.
func estimate(rs []run, clip run) int {
	total := 0
	containersOf(rs, clip, func(window run, in []run) {
		payload := denseBytes
		if len(in) == 1 {
			payload = 4
		}
		total += window.containers() * (containerBytes + min(2*countWithin(window, in), payload))
	})
	return total
}

// bitmapOf returns a bitmap of those ids of rs that are in clip.
func bitmapOf(rs []run, clip run) *roaring.Bitmap {
	b := builder{out: roaring.New()}
	containersOf(rs, clip, b.add)
	b.merge()
	return b.done
}

// A builder fills a bitmap container by container.
type builder struct {
	done  *roaring.Bitmap // nil at first
	out   *roaring.Bitmap // above done
	ors   int             // parts that were added to out
	words []uint64        // of one container
}

const (
	wordBits = 64

	listed = 512 // ids up to which a container is filled id by id

	// batch is the number of parts after which out is added to done. Or goes
	// over the containers below its argument, so that without batches many
	// containers would cost the square of their number.
	batch = 256
)

// add adds what runs have in a window, which is above all before it.
func (b *builder) add(window run, in []run) {
	switch {
	case len(in) == 1:
		r := in[0].within(window)
		b.out.AddRange(uint64(r.first), uint64(r.last)+1)
	case countWithin(window, in) <= listed:
		list := make([]uint32, 0, listed) // on the stack
		for _, r := range in {
			r = r.within(window)
			for id := r.first; id <= r.last; id++ {
				list = append(list, id)
			}
		}
		b.out.AddMany(list)
	default:
		b.addWords(window, in)
	}
}

// addWords is add by way of a container of words.
func (b *builder) addWords(window run, in []run) {
	if b.words == nil {
		b.words = make([]uint64, (containerMask+1)/wordBits)
	}
	for _, r := range in {
		r = r.within(window)
		setWords(b.words, r.first&containerMask, r.last&containerMask)
	}
	part := roaring.FromDense(b.words, true)
	clear(b.words)
	if key := window.first >> containerBits; key > 0 {
		part = roaring.AddOffset64(part, int64(key)<<containerBits)
	}
	if b.out.IsEmpty() {
		b.out = part
	} else {
		b.out.Or(part)
	}
	if b.ors++; b.ors == batch {
		b.merge()
	}
}

func (b *builder) merge() {
	if b.done == nil {
		b.done = b.out
	} else {
		b.done.Or(b.out)
	}
	b.out, b.ors = roaring.New(), 0
}

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

// countBits returns the number of runs in a bitmap, or limit+1 for more.
func countBits(bits *roaring.Bitmap, limit int) int {
	n := 0
	for range bits.Ranges() {
		if n++; n > limit {
			break
		}
	}
	return n
}

func bitsIn(bits *roaring.Bitmap, r run) uint64 {
	return bits.CardinalityInRange(uint64(r.first), uint64(r.last)+1)
}

// endOfRun returns the last id of the run of a bitmap that holds id. Its steps double as long
// as all ids up to there are present, then halve.
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
