package jsonobj

// Missing returns the index of the first of some keys that the object of a Reader
// lacks, -1 if it has all.
func Missing(r *Reader, keys []string) int { return r.missing(keys) }
