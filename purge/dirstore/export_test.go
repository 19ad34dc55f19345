package dirstore

// CompactNext makes the next PutTombstones write the log anew first.
func (s *Store) CompactNext() { s.compactAt = 0 }

// ParseRecord and AppendRecord are for the fuzz test.
var (
	ParseRecord  = parseRecord
	AppendRecord = appendRecord
	ParseMark    = parseMark
)
