package hostlist

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

const maxName = 255 // bytes of a host name

// What the zero Parser allows.
const (
	defaultText    = 4 << 20
	defaultHosts   = 1 << 24
	defaultSpelled = 1 << 17
)

// Parse parses a hostlist string of RFC 29: expressions such as "foo[1-3,5]-ib",
// separated by commas. Empty expressions add nothing; "" is the empty list. Its limits are
// those of the zero [Parser].
//
// An id has up to 18 digits. A longer number is accepted if its leading digits are the same in its
// whole range. Leading zeros of an element's first id set the width of that element only.
//
// The error names the offset, and wraps [ErrLimit] if s is too large. Parse takes time in
// proportion to the text, and to spelled hosts. It copies what it keeps.
func Parse(s string) (*List, error) { return Parser{}.Parse(s) }

// A Parser parses hostlist strings within limits. In each field, 0 or less means
// the default, and more than 2^31-1 means 2^31-1.
type Parser struct {
	MaxText    int // bytes of the text; default 4 MiB
	MaxHosts   int // hosts in the list; default 2^24
	MaxSpelled int // hosts in brackets that a suffix follows; default 2^17
}

// Parse is [Parse] within the limits of p.
func (p Parser) Parse(s string) (*List, error) {
	or := func(n, def int) int {
		if n <= 0 {
			return def
		}
		return min(n, math.MaxInt32)
	}
	p = Parser{or(p.MaxText, defaultText), or(p.MaxHosts, defaultHosts), or(p.MaxSpelled, defaultSpelled)}
	if len(s) > p.MaxText {
		return nil, limitError(0, "bytes", len(s), p.MaxText)
	}
	read := parser{text: s, most: p}
	if err := read.scan(); err != nil {
		return nil, err
	}
	if cap(read.items) > 2*len(read.items) {
		read.items = slices.Clone(read.items)
	}
	return &List{items: read.items}, nil
}

// A parser has read text[:pos].
type parser struct {
	text    string
	pos     int
	start   int // of the expression that is read
	most    Parser
	spelled int
	items   []item
	ranges  []idRange // of the brackets that are read; their room is used again
}

// An idRange is an element of an idlist. lead is the first of more than maxDigits digits.
type idRange struct {
	lead        string
	first, last uint64
	width       uint8
	offset      int
}

// scan reads all expressions. Names are substrings of one copy of the text.
func (p *parser) scan() error {
	if strings.Trim(p.text, ",") != "" {
		p.text = strings.Clone(p.text)
	}
	for {
		p.start = p.pos
		if err := p.expression(); err != nil {
			return err
		}
		if p.pos == len(p.text) {
			return nil
		}
		p.pos++ // the comma
	}
}

// expression reads up to the comma or the end that follows.
func (p *parser) expression() error {
	prefix := p.name()
	if !p.at('[') {
		if err := p.stop(); err != nil || prefix == "" {
			return err
		}
		if err := p.fits(p.start, len(prefix), 1); err != nil {
			return err
		}
		p.grow()
		p.items = push(p.items, split(prefix))
		return nil
	}
	p.pos++
	p.ranges = p.ranges[:0]
	for {
		r, err := p.element()
		if err != nil {
			return err
		}
		p.ranges = append(p.ranges, r)
		if p.at(']') {
			break
		}
		p.pos++ // the comma
	}
	p.pos++
	suffix := p.name()
	if p.at('[') {
		return p.fail(p.pos, "second bracket")
	}
	if err := p.stop(); err != nil {
		return err
	}
	for _, r := range p.ranges {
		longest := len(prefix) + len(r.lead) + int(max(r.width, digits(r.last))) + len(suffix)
		if err := p.fits(r.offset, longest, r.last-r.first+1); err != nil {
			return err
		}
		if suffix == "" {
			p.grow()
			p.items = pushRange(p.items, prefix+r.lead, r.first, r.last, r.width)
		} else if err := p.spell(r, prefix, suffix, longest); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) name() string {
	start := p.pos
	for p.pos < len(p.text) && isName(p.text[p.pos]) {
		p.pos++
	}
	return p.text[start:p.pos]
}

func (p *parser) at(c byte) bool { return p.pos < len(p.text) && p.text[p.pos] == c }

// stop returns an error unless an expression can end here.
func (p *parser) stop() error {
	switch {
	case p.pos == len(p.text) || p.text[p.pos] == ',':
		return nil
	case p.text[p.pos] == ']':
		return p.fail(p.pos, "bracket is not opened")
	}
	return p.fail(p.pos, "unexpected byte")
}

// element reads an id or a range of ids, up to the comma or the bracket that follows.
func (p *parser) element() (idRange, error) {
	offset := p.pos
	first, err := p.id()
	if err != nil {
		return idRange{}, err
	}
	last := first
	if p.at('-') {
		p.pos++
		if last, err = p.id(); err != nil {
			return idRange{}, err
		}
	}
	if !p.at(',') && !p.at(']') {
		if p.pos == len(p.text) {
			return idRange{}, p.fail(p.pos, "bracket is not closed")
		}
		return idRange{}, p.fail(p.pos, "unexpected byte")
	}
	return p.idRange(offset, first, last)
}

func (p *parser) id() (string, error) {
	start := p.pos
	for p.pos < len(p.text) && isDigit(p.text[p.pos]) {
		p.pos++
	}
	switch {
	case start < p.pos:
		return p.text[start:p.pos], nil
	case p.pos == len(p.text):
		return "", p.fail(p.pos, "bracket is not closed")
	case p.at(',') || p.at(']') || p.at('-'):
		return "", p.fail(p.pos, "empty element")
	}
	return "", p.fail(p.pos, "unexpected byte")
}

// idRange returns the range of two ids as they are written at the offset.
func (p *parser) idRange(offset int, first, last string) (idRange, error) {
	// The zeros of the last id say nothing: the width of the first is the width of all.
	last = strings.TrimLeft(last, "0")
	if value := strings.TrimLeft(first, "0"); cmp.Or(cmp.Compare(len(last), len(value)), cmp.Compare(last, value)) < 0 {
		return idRange{}, p.fail(offset, "range does not ascend")
	}
	r := idRange{offset: offset}
	r.lead, first = tail(first)
	lead, low := tail(last)
	if lead != strings.TrimLeft(r.lead, "0") {
		return idRange{}, limitError(offset, "digits of an id", len(last), maxDigits)
	}
	r.first, r.last, r.width = number(first), number(low), uint8(len(first))
	return r, nil
}

// tail returns the last maxDigits digits, and those before them.
func tail(digits string) (lead, low string) {
	n := max(len(digits)-maxDigits, 0)
	return digits[:n], digits[n:]
}

// fits returns an error unless there is room for n names of at most so many bytes.
func (p *parser) fits(offset, bytes int, n uint64) error {
	if bytes > maxName {
		return limitError(offset, "bytes of a name", bytes, maxName)
	}
	if n += count(p.items); n > uint64(p.most.MaxHosts) {
		return limitError(offset, "hosts", saturate(n), p.most.MaxHosts)
	}
	return nil
}

// grow makes room in a full list for what comes if the text goes on as it began, but at most
// three times what there is: append would copy a long list five times.
func (p *parser) grow() {
	const few = 16
	n := len(p.items)
	if n < few || n < cap(p.items) {
		return
	}
	rest := uint64(n) * uint64(len(p.text)-p.pos) / uint64(p.pos)
	p.items = slices.Grow(p.items, int(min(rest, 3*uint64(n)))+1)
}

// spell appends the hosts of a range with a suffix, each by itself, since the id ends in it.
func (p *parser) spell(r idRange, prefix, suffix string, longest int) error {
	n := r.last - r.first + 1
	if n > uint64(p.most.MaxSpelled-p.spelled) {
		return limitError(r.offset, "spelled hosts", saturate(uint64(p.spelled)+n), p.most.MaxSpelled)
	}
	p.spelled += int(n)
	names := make([]byte, 0, int(n)*longest)
	for id := r.first; id <= r.last; id++ {
		names = append(append(names, prefix...), r.lead...)
		names = append(appendID(names, id, r.width), suffix...)
	}
	all := string(names)
	p.items = slices.Grow(p.items, int(n))
	for id := r.first; id <= r.last; id++ {
		size := len(prefix) + len(r.lead) + int(max(r.width, digits(id))) + len(suffix)
		p.items = push(p.items, split(all[:size]))
		all = all[size:]
	}
	return nil
}

func (p *parser) fail(offset int, cause string) error {
	return syntaxError(offset, cause, p.text[p.start:])
}
