package perilog_test

import (
	"reflect"
	"unsafe"

	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// shared are types of values that never change, and so need no copy.
var shared = map[reflect.Type]bool{
	reflect.TypeFor[rset.R]():               true,
	reflect.TypeFor[perilog.ActionConfig](): true,
}

// deepCopy returns a copy of what p points to that shares nothing with it that
// can change, whatever its fields: an exhaustive walk over states goes on from
// each state in several ways.
func deepCopy[T any](p *T) *T {
	c := copier{}
	return c.value(reflect.ValueOf(p)).Interface().(*T)
}

// A copier knows which pointer was copied to which.
type copier map[unsafe.Pointer]reflect.Value

func (c copier) value(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || shared[v.Type().Elem()] {
			return v
		}
		if done, ok := c[v.UnsafePointer()]; ok && done.Type() == v.Type() {
			return done
		}
		out := reflect.New(v.Type().Elem())
		c[v.UnsafePointer()] = out
		c.into(out.Elem(), v.Elem())
		return out
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return c.value(v.Elem())
	case reflect.Slice:
		if v.IsNil() || shared[v.Type().Elem()] {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		if flat(v.Type().Elem()) {
			reflect.Copy(out, v)
			return out
		}
		for i := range v.Len() {
			c.into(out.Index(i), v.Index(i))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(it.Key(), c.value(it.Value()))
		}
		return out
	case reflect.Struct, reflect.Array:
		out := reflect.New(v.Type()).Elem()
		c.into(out, v)
		return out
	default:
		return v
	}
}

// into copies src to dst, both addressable, through fields that are not
// exported.
func (c copier) into(dst, src reflect.Value) {
	switch src.Kind() {
	case reflect.Struct:
		dst.Set(src)
		for _, i := range deepFields(src.Type()) {
			c.into(open(dst.Field(i)), open(src.Field(i)))
		}
	case reflect.Array:
		if flat(src.Type()) {
			dst.Set(src)
			return
		}
		for i := range src.Len() {
			c.into(dst.Index(i), src.Index(i))
		}
	default:
		dst.Set(c.value(src))
	}
}

func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

var deepTypes = map[reflect.Type][]int{}

// deepFields returns the fields of a struct that are not flat.
func deepFields(t reflect.Type) []int {
	deep, known := deepTypes[t]
	if !known {
		for i := range t.NumField() {
			if !flat(t.Field(i).Type) {
				deep = append(deep, i)
			}
		}
		deepTypes[t] = deep
	}
	return deep
}

var flatTypes = map[reflect.Type]bool{}

// flat reports whether values of a type refer to nothing that can change.
func flat(t reflect.Type) bool {
	if known, ok := flatTypes[t]; ok {
		return known
	}
	is := true
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			is = is && flat(t.Field(i).Type)
		}
	case reflect.Array:
		is = flat(t.Elem())
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		is = false
	}
	flatTypes[t] = is
	return is
}
