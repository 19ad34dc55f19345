package jsonobj

// Missing returns the index of the first of some keys that the object of a Reader
// lacks, -1 if it has all.
func Missing(r *Reader, keys []string) int {
	d := r.self.doc
	return r.walk.Missing(d.text, &d.tape, r.self.span, keys)
}
