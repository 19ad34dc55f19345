package jobstate

import "iter"

// ordered is a map from string to V that keeps the order of insertion. Up to
// indexFrom items it is a slice searched from the front, which is what nearly
// every job needs; beyond, a map finds the place, so that a log with many
// dependencies or memos costs a constant time each. The zero value is empty.
//
// Invariant: items[i].dead marks a removed item; index, where it exists, has
// exactly the live keys; live counts them.
type ordered[V any] struct {
	items []item[V]
	index map[string]int
	live  int
}

type item[V any] struct {
	key   string
	value V
	dead  bool
}

const indexFrom = 16

// find returns the place of key, or -1. It does not allocate.
func find[V any, K string | []byte](o *ordered[V], key K) int {
	if o.index != nil {
		if i, ok := o.index[string(key)]; ok {
			return i
		}
		return -1
	}
	for i := range o.items {
		if !o.items[i].dead && o.items[i].key == string(key) {
			return i
		}
	}
	return -1
}

// get returns the value of key for reading and changing, or nil. The pointer
// is valid until the next put or del.
func (o *ordered[V]) get(key string) *V {
	if i := find(o, key); i >= 0 {
		return &o.items[i].value
	}
	return nil
}

// put sets the value of key, which keeps its place where it has one.
func (o *ordered[V]) put(key string, v V) {
	if i := find(o, key); i >= 0 {
		o.items[i].value = v
		return
	}
	o.items = append(o.items, item[V]{key: key, value: v})
	o.live++
	switch {
	case o.index != nil:
		o.index[key] = len(o.items) - 1
	case len(o.items) > indexFrom:
		o.reindex()
	}
}

// del removes key and reports whether it was there.
func (o *ordered[V]) del(key string) bool {
	i := find(o, key)
	if i < 0 {
		return false
	}
	o.items[i] = item[V]{dead: true}
	o.live--
	if o.index != nil {
		delete(o.index, key)
	}
	if len(o.items) >= 2*o.live {
		o.compact()
	}
	return true
}

// compact drops the dead items. Called when at least half are dead, it costs
// a constant time per removal.
func (o *ordered[V]) compact() {
	n := 0
	for i := range o.items {
		if !o.items[i].dead {
			o.items[n] = o.items[i]
			n++
		}
	}
	clear(o.items[n:])
	o.items = o.items[:n]
	if n == 0 {
		o.items = nil
	}
	o.index = nil
	if n > indexFrom {
		o.reindex()
	}
}

func (o *ordered[V]) reindex() {
	o.index = make(map[string]int, 2*len(o.items))
	for i := range o.items {
		if !o.items[i].dead {
			o.index[o.items[i].key] = i
		}
	}
}

// all yields the live items in the order of insertion. The set must not
// change meanwhile.
func (o *ordered[V]) all() iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		for i := range o.items {
			if !o.items[i].dead && !yield(o.items[i].key, &o.items[i].value) {
				return
			}
		}
	}
}
