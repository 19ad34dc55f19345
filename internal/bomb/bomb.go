package bomb

import (
	"bytes"
	"compress/gzip"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife/internal/race"
)

const (
	Size   = 1 << 20     // how long a bomb is
	Memory = 64 << 20    // how much it may take, at a time
	Time   = time.Second // and how long
)

// A Bomb is a hostile text of about [Size] bytes.
type Bomb struct {
	Name string
	Text func(size int) []byte
}

// Of returns the bomb in another size.
func (b Bomb) Of(size int) Bomb {
	return Bomb{b.Name + " of " + strconv.Itoa(size), func(int) []byte { return b.Text(size) }}
}

// Raw is a bomb that is a text as it stands.
func Raw(name, text string) Bomb { return Bomb{name, func(int) []byte { return []byte(text) }} }

// Fill returns the bomb that repeats a text until it is full. In the text, # stands
// for the number of the repetition, and commas stand between repetitions if there is
// one at its end.
func Fill(name, head, unit, tail string) Bomb {
	return Bomb{name, func(size int) []byte {
		b := append(make([]byte, 0, size+len(unit)), head...)
		parts := strings.Split(unit, "#")
		for n := int64(0); ; n++ {
			full := len(b)
			for i, part := range parts {
				if i > 0 {
					b = strconv.AppendInt(b, n, 10)
				}
				b = append(b, part...)
			}
			if len(b)+len(tail) > size {
				return append(bytes.TrimSuffix(b[:full], []byte(",")), tail...)
			}
		}
	}}
}

// Nest returns the bomb that is a text between as many brackets as there is room for.
func Nest(name, head, left, middle, right, tail string) Bomb {
	return Bomb{name, func(size int) []byte {
		n := (size - len(head) - len(middle) - len(tail)) / (len(left) + len(right))
		return []byte(head + strings.Repeat(left, n) + middle + strings.Repeat(right, n) + tail)
	}}
}

// Gzip returns the bomb that is a text again and again, compressed.
func Gzip(name, unit string) Bomb {
	return Bomb{name, func(size int) []byte {
		var plain []byte
		for i := 0; len(plain) < 1<<22; i++ {
			plain = append(plain, strings.ReplaceAll(unit, "#", strconv.Itoa(i))...)
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(plain) // a Buffer takes all
		_ = z.Close()
		return bytes.Repeat(b.Bytes(), max(1, size/b.Len())) // members follow each other
	}}
}

// Bzip2 returns the bomb that has 45 MB of zeros in each 50 bytes.
func Bzip2(name string) Bomb {
	const zeros = "BZh91AY&SY\xc9\x01\xb6\xc8\x01X\xabH \xc0\x00\x10\x00\x00\b \x000\xcc\x05)\xa6RHRlT\x92\x14\x9e.\xe4\x8ap\xa1!\x92\x03m\x90"
	return Fill(name, "", zeros, "")
}

// JSON returns bombs that are a JSON value each, in place of @ in a text.
func JSON(text string) []Bomb {
	head, tail, _ := strings.Cut(text, "@")
	list := []Bomb{
		Nest("nested arrays", head, "[", "", "]", tail),
		Nest("nested objects", head, `{"a":`, "1", "}", tail),
		Nest("two thousand levels", head+strings.Repeat("[", 2000), " ", "1", " ", strings.Repeat("]", 2000)+tail),
		Fill("open arrays", head, "[", ""),
		Fill("numbers", head+"[", "#,", "]"+tail),
		Fill("zeros", head+"[", "0,", "]"+tail),
		Fill("empty objects", head+"[", "{},", "]"+tail),
		Fill("empty strings", head+"[", `"",`, "]"+tail),
		Fill("keys", head+"{", `"#":0,`, "}"+tail),
		Fill("one key again and again", head+"{", `"a":0,`, "}"+tail),
		Fill("a key twice", head+"{", `"#":0,`, `,"0":0}`+tail),
		Fill("a long key", head+`{"`, "x", `":0}`+tail),
		Fill("keys with escapes", head+"{", `"\u0061#":0,`, "}"+tail),
		Fill("small objects of keys with escapes", head+"[", `{"\u0061":0,"\u0062":0,"\u0063":0,"\u0064":0,"\u0065":0,"\u0066":0,"\u0067":0,"\u0068":0},`, "]"+tail),
		Fill("a long string", head+`"`, "x", `"`+tail),
		Fill("escapes", head+`"`, `\u0000`, `"`+tail),
		Fill("an open string", head+`"`, `\\`, ""),
		Fill("a long number", head, "9", tail),
		Fill("a long fraction", head+"0.", "1", tail),
		Fill("white space", head, " \n", "0"+tail),
		Fill("bytes that are no UTF-8", head+`"`, "\xff", `"`+tail),
	}
	for i := range list {
		list[i].Name += " in " + strings.TrimSpace(head[max(0, len(head)-24):])
	}
	return list
}

// DefuseProgram throws at a program that reads lines some bombs, and JSON in place of @ in
// each of some lines. With few > 0 it throws only so many of the bombs, and one of JSON in
// each place, another each time.
func DefuseProgram(t *testing.T, work func(text []byte), few int, bombs []Bomb, places ...string) {
	t.Helper()
	if few > 0 {
		bombs = bombs[:few:few]
	}
	for _, place := range places {
		list := JSON(place)
		if few > 0 {
			list = list[len(bombs)%len(list):][:1]
		}
		bombs = append(bombs, list...)
	}
	Defuse(t, work, bombs...)
}

// Defuse fails unless work takes little of each bomb.
func Defuse(t *testing.T, work func(text []byte), bombs ...Bomb) {
	t.Helper()
	if race.Enabled { // what it finds, the first one shows
		bombs = bombs[:min(1, len(bombs))]
	}
	for _, b := range bombs {
		text := b.Text(Size)
		memory, took := Cost(func() { work(text) })
		t.Logf("%-50s %8d KiB %10v", b.Name, memory>>10, took.Round(time.Millisecond))
		if memory > Memory {
			t.Errorf("%s: %d bytes take %d KiB of memory, at most %d are allowed", b.Name, len(text), memory>>10, Memory>>10)
		}
		if took > Time && !race.Enabled {
			t.Errorf("%s: %d bytes take %v, at most %v is allowed", b.Name, len(text), took, Time)
		}
	}
}

// Cost returns the most memory that work has at a time, and the time of the processors
// that it takes, or bounds of both that are small.
func Cost(work func()) (memory uint64, took time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := ProcessorTime()
	work()
	took = ProcessorTime() - start
	runtime.ReadMemStats(&after)
	for range 2 { // two threads of one core take longer each
		if took > Time {
			start = ProcessorTime()
			work()
			took = min(took, ProcessorTime()-start)
		}
	}
	memory = after.TotalAlloc - before.TotalAlloc // no more was live
	for range 3 {                                 // what is allocated while a collection waits for a processor counts as live
		if memory > Memory {
			memory = min(memory, peak(work))
		}
	}
	return memory, took
}

// peak returns how much more memory is live during work than before, if it is more than
// half of what is allowed. From there on, the collector runs all the time.
func peak(work func()) uint64 {
	live := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	debug.FreeOSMemory()
	base, most := live(), uint64(0)
	total := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(total)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(total[0].Value.Uint64() - total[1].Value.Uint64() + Memory/2)))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				most = max(most, live())
			case <-done:
				return
			}
		}
	}()
	work()
	close(done)
	<-stopped
	most = max(most, live(), base)
	return most - base
}
