package dirstore

// CompactNext makes the next PutTombstones begin to write the log anew.
func (s *Store) CompactNext() { s.tombs.compactAt = 0 }

// ParseRecord, AppendRecord and the like are for tests.
var (
	ParseRecord  = parseRecord
	AppendRecord = appendRecord
	ParseMark    = parseMark
	AppendMark   = appendMark
)
