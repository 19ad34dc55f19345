package perilog

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
)

// say is a mask of the keys that a scanner looks at.
type say uint16

const (
	sayDescription say = 1 << iota
	sayStatus
	sayFinal
	sayRanks
	sayResources
	sayNodelist
	sayAction
	sayAll // "all" is a text of ranks

	// What contexts must say, in the lower byte, and may say, in the upper one.
	mustBits   = 8
	sayStart   = sayDescription | (sayRanks|sayResources)<<mustBits
	sayFinish  = sayDescription | sayStatus | (sayRanks|sayResources)<<mustBits
	sayEnd     = sayDescription | sayStatus
	sayRelease = sayDescription | sayStatus | sayRanks | sayResources<<mustBits
	sayLetGo   = sayRanks | sayFinal | sayAll // RFC 21's release
	sayFailed  = sayRanks | sayAction | sayNodelist<<mustBits
)

// keyOf returns the bit of a key.
func keyOf(key []byte) say {
	switch string(key) {
	case "description":
		return sayDescription
	case "status":
		return sayStatus
	case "final":
		return sayFinal
	case keyRanks:
		return sayRanks
	case keyResources:
		return sayResources
	case keyNodelist:
		return sayNodelist
	case keyAction:
		return sayAction
	default:
		return 0
	}
}

// nameOf returns the key of a bit.
func nameOf(bit say) string {
	for _, k := range []string{"description", "status", "final", keyRanks, keyResources, keyNodelist, keyAction} {
		if keyOf([]byte(k)) == bit {
			return k
		}
	}
	return ""
}

// contextLimits are those of a context in an entry, which is one level more.
func contextLimits() jsonscan.Limits { return jsonscan.Limits{Depth: jsonscan.DefaultDepth - 1} }

// A scanner reads what contexts say of holds. It reuses its memory, so that a
// context with few ranks and without names costs no allocation. The fields are
// those of the context read last.
type scanner struct {
	seen        say
	description []byte
	status      int32
	final       bool
	all         bool      // ranks is "all"
	ranks       idset.Set // what ranks names
	names       []string  // not reused: they are kept
	nodelist    string
	action      FailedAction
}

func (s *scanner) saw(k say) bool { return s.seen&k != 0 }

// scan reads the keys that want names; the context must be one JSON object,
// and all its other keys are let pass.
func (s *scanner) scan(event string, raw json.RawMessage, want say) error {
	must := want & (1<<mustBits - 1) &^ sayAll
	look := must | want>>mustBits
	s.seen, s.description, s.names, s.nodelist = 0, s.description[:0], nil, ""
	s.all = false
	s.ranks.SubtractWith(&s.ranks)
	if len(raw) == 0 {
		return contextError(event, nameOf(must&-must), -1, errKeyMissing)
	}
	cur := contextLimits().Object(raw)
	for cur.Next() {
		k := keyOf(cur.Key()) & look
		if k == 0 {
			continue
		}
		s.seen |= k
		if err := s.value(k, cur.Raw(), want&sayAll != 0); err != nil {
			return contextError(event, nameOf(k), cur.Offset(), err)
		}
	}
	if cur.Err() != nil {
		return contextError(event, "", cur.Offset(), cur.Err())
	}
	if missing := must &^ s.seen; missing != 0 {
		return contextError(event, nameOf(missing&-missing), -1, errKeyMissing)
	}
	if s.seen&sayAction != 0 && s.ranks.IsEmpty() {
		return contextError(event, keyRanks, -1, errKeyEmpty)
	}
	return nil
}

// value reads the value of a key.
func (s *scanner) value(k say, raw []byte, all bool) error {
	ok := true
	switch k {
	case sayDescription:
		s.description, ok = jsonscan.AppendUnescaped(s.description, raw)
	case sayStatus:
		n, integer := jsonscan.Int64(raw)
		switch {
		case !integer && jsonscan.IsInteger(raw), integer && (n < math.MinInt32 || n > math.MaxInt32):
			return errKeyRange
		}
		s.status, ok = int32(n), integer
	case sayFinal:
		s.final, ok = jsonscan.Bool(raw)
	case sayRanks:
		if all && string(raw) == `"all"` {
			s.all = true
			return nil
		}
		return s.readRanks(raw)
	case sayResources:
		return s.readNames(raw)
	case sayNodelist:
		s.nodelist, ok = jsonscan.String(raw)
	case sayAction:
		var text string
		text, ok = jsonscan.String(raw)
		switch text {
		case "keep":
			s.action = FailedKeep
		case "drop":
			s.action = FailedDrop
		default:
			if ok {
				return errKeyAction
			}
		}
	}
	if !ok {
		return errKeyType
	}
	return nil
}

// readRanks reads an idset. A plain one, as "17" or "3-5,9", needs no memory.
func (s *scanner) readRanks(raw []byte) error {
	if raw[0] != '"' {
		return errKeyType
	}
	if s.plainRanks(raw[1 : len(raw)-1]) {
		return nil
	}
	s.ranks.SubtractWith(&s.ranks)
	text, _ := jsonscan.String(raw)
	set, err := idset.Parse(text)
	if err != nil {
		return err
	}
	s.ranks.UnionWith(set)
	return nil
}

// plainRanks reads ids and ranges that ascend, and returns false for any other
// text, which idset.Parse is to judge. It gives up on a long one: Parse is made
// for that.
func (s *scanner) plainRanks(text []byte) bool {
	if len(text) > 64 {
		return false
	}
	next, i := uint64(0), 0 // next: the smallest id that may come
	for i < len(text) {
		first, n := plainID(text[i:])
		i += n
		last := first
		if n > 0 && i < len(text) && text[i] == '-' {
			var m int
			if last, m = plainID(text[i+1:]); m == 0 || last <= first {
				return false
			}
			i += 1 + m
		}
		if n == 0 || first < next || last > idset.MaxID {
			return false
		}
		s.ranks.InsertRange(uint32(first), uint32(last))
		next = last + 1
		switch {
		case i == len(text):
			return true
		case text[i] != ',' || i+1 == len(text):
			return false
		}
		i++
	}
	return true // empty
}

// plainID reads an id of up to ten digits, and returns how many there are: 0 if
// there is none.
func plainID(text []byte) (id uint64, n int) {
	for n < len(text) && n < 10 && text[n] >= '0' && text[n] <= '9' {
		id = id*10 + uint64(text[n]-'0')
		n++
	}
	if n > 1 && text[0] == '0' {
		return 0, 0
	}
	return id, n
}

// readNames reads an array of names.
func (s *scanner) readNames(raw []byte) error {
	cur := contextLimits().Array(raw)
	for cur.Next() {
		name, ok := jsonscan.String(cur.Raw())
		switch {
		case !ok:
			return errKeyType
		case name == "":
			return errKeyEmpty
		}
		s.names = append(s.names, name)
	}
	if cur.Err() != nil {
		return errKeyType
	}
	sorted := slices.Clone(s.names)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != len(s.names) {
		return errKeyTwice
	}
	return nil
}
