package dirstore

// FS is what a Store needs of a file system.
type FS = folder

// Wrap returns options with a file system in the place of that of the store.
func Wrap(wrap func(FS) FS) Options { return Options{wrap: wrap} }

// CompactNext makes the next PutTombstones begin to write the log anew.
func (s *Store) CompactNext() { s.tombs.compactAt = 0 }

// ParseRecord, AppendRecord and the like are for tests.
var (
	ParseRecord  = parseRecord
	AppendRecord = appendRecord
	ParseMark    = parseMark
	AppendMark   = appendMark
)
