package boltstore

// Seal returns a value as it is stored.
func Seal(key, data []byte) []byte { return seal(key, data) }
