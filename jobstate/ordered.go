package jobstate

import (
	"iter"
	"slices"
)

// ordered is a map from K to V that keeps the order of insertion. Beyond indexFrom items, which
// few jobs have, a map finds the place in the slice. The zero value is empty.
//
// Invariant: items[i].dead marks a removed item; index, if it is not nil, has exactly the live
// keys; live counts them.
type ordered[K comparable, V any] struct {
	items []item[K, V]
	index map[K]int
	live  int
}

type item[K comparable, V any] struct {
	key   K
	value V
	dead  bool
}

const indexFrom = 16

// find returns the place of key, or -1. It does not allocate.
func (o *ordered[K, V]) find(key K) int {
	if o.index != nil {
		if i, ok := o.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range o.items {
		if !o.items[i].dead && o.items[i].key == key {
			return i
		}
	}
	return -1
}

// get returns the value of key, or nil. The pointer is valid until the next put or del.
func (o *ordered[K, V]) get(key K) *V {
	if i := o.find(key); i >= 0 {
		return &o.items[i].value
	}
	return nil
}

// put sets the value of key, which keeps its place if it has one, and returns it as get does.
func (o *ordered[K, V]) put(key K, v V) *V {
	if old := o.get(key); old != nil {
		*old = v
		return old
	}
	o.items = append(o.items, item[K, V]{key: key, value: v})
	o.live++
	switch {
	case o.index != nil:
		o.index[key] = len(o.items) - 1
	case len(o.items) > indexFrom:
		o.reindex()
	}
	return &o.items[len(o.items)-1].value
}

func (o *ordered[K, V]) del(key K) {
	i := o.find(key)
	if i < 0 {
		return
	}
	o.items[i] = item[K, V]{dead: true}
	o.live--
	if o.index != nil {
		delete(o.index, key)
	}
	if len(o.items) >= 2*o.live {
		o.compact()
	}
}

// compact drops the dead items: at least half, so a removal takes constant time on average.
func (o *ordered[K, V]) compact() {
	o.items = slices.DeleteFunc(o.items, func(i item[K, V]) bool { return i.dead })
	if len(o.items) == 0 {
		o.items = nil
	}
	o.index = nil
	if len(o.items) > indexFrom {
		o.reindex()
	}
}

func (o *ordered[K, V]) reindex() {
	o.index = make(map[K]int, 2*len(o.items))
	for i := range o.items {
		if !o.items[i].dead {
			o.index[o.items[i].key] = i
		}
	}
}

// all yields the live items in the order of insertion. The set must not change meanwhile.
func (o *ordered[K, V]) all() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for i := range o.items {
			if !o.items[i].dead && !yield(o.items[i].key, &o.items[i].value) {
				return
			}
		}
	}
}
