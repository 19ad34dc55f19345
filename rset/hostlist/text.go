package hostlist

// String returns the canonical text, such as "foo[1-3,5],bar": consecutive ids are ranges, and
// neighbours with one prefix share brackets. Equal lists have equal texts, and Parse of a text
// gives an equal list. The empty list is "".
func (l *List) String() string {
	var room [128]byte
	return string(l.append(room[:0]))
}

// AppendText appends what String returns. The error is nil. If dst has room, it does not allocate.
func (l *List) AppendText(dst []byte) ([]byte, error) { return l.append(dst), nil }

// MarshalText returns what String returns, so that a list in JSON is a string. The error is nil.
func (l *List) MarshalText() ([]byte, error) { return l.append([]byte{}), nil }

// UnmarshalText replaces the list with what Parse returns. After an error it is as before.
func (l *List) UnmarshalText(text []byte) error {
	m, err := Parse(string(text))
	if err != nil {
		return err
	}
	l.items = m.items
	return nil
}

func (l *List) append(dst []byte) []byte {
	items := l.list()
	for i := 0; i < len(items); {
		if i > 0 {
			dst = append(dst, ',')
		}
		end := i + 1
		for end < len(items) && items[i].width > 0 && items[end].width > 0 && items[i].prefix == items[end].prefix {
			end++
		}
		dst = appendGroup(dst, items[i:end])
		i = end
	}
	return dst
}

// appendGroup appends items of one prefix.
func appendGroup(dst []byte, group []item) []byte {
	r := &group[0]
	if len(group) == 1 && r.first == r.last {
		return appendHost(dst, r.prefix, r.first, r.width)
	}
	dst = append(append(dst, r.prefix...), '[')
	for i := range group {
		r := &group[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendID(dst, r.first, r.width)
		if r.first < r.last {
			dst = appendID(append(dst, '-'), r.last, r.width)
		}
	}
	return append(dst, ']')
}
