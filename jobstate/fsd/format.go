package fsd

import "strconv"

// Numbers of significant digits.
const (
	defaultDigits = 6  // what the reference prints
	maxDigits     = 17 // as many as tell any two float64 from each other
)

// maxText is the length of the longest text of a valid duration: 17 digits, a
// point, an exponent of five bytes and a unit of two.
const maxText = 17 + 1 + 5 + 2

// unit is one of RFC 23's, and how many of it a duration has.
type unit struct {
	suffix string
	count  float64
}

// unitOf returns the unit in which the reference prints a valid, finite d: the
// greatest of which d has one at least, but milliseconds only below 0.1 s.
func unitOf(d Duration) unit {
	s := float64(d)
	switch {
	case d >= Day:
		return unit{"d", s / float64(Day)}
	case d >= Hour:
		return unit{"h", s / float64(Hour)}
	case d >= Minute:
		return unit{"m", s / float64(Minute)}
	case d >= 0.1 || d == 0:
		return unit{"s", s}
	}
	return unit{"ms", s * 1000}
}

// AppendFormat appends d to dst, rounded to that many significant digits, and
// returns the extended slice: what the reference prints, which is for people to read.
// Digits below 1 count as 1 and above 17 as 17; the reference's default is 6. The unit is
// chosen before rounding, so that 59.9999999 is "60s" and not "1m". An
// infinite d is "infinity", and one that is not valid is like "Duration(-1)".
//
// It does not allocate if dst has room for 34 bytes.
func (d Duration) AppendFormat(dst []byte, digits int) []byte {
	switch {
	case !d.IsValid():
		dst = append(dst, "Duration("...)
		dst = strconv.AppendFloat(dst, float64(d), 'g', -1, 64)
		return append(dst, ')')
	case d.IsInfinite():
		return append(dst, "infinity"...)
	}
	u := unitOf(d.abs())
	dst = strconv.AppendFloat(dst, u.count, 'g', min(max(digits, 1), maxDigits), 64)
	return append(dst, u.suffix...)
}

// Format returns d rounded to that many significant digits, as AppendFormat
// appends it.
func (d Duration) Format(digits int) string {
	return string(d.AppendFormat(make([]byte, 0, maxText), digits))
}

// AppendText appends the canonical text of d to dst and returns the extended slice.
// It implements encoding.TextAppender.
//
// The text is what the reference prints, with its six digits, if [Parse] reads that
// back as d, such as "1.5h". Otherwise it is the shortest number of seconds that
// does, such as "3601s", where the reference rounds to "1.00028h". An infinite d
// is "infinity".
//
// If d is not valid the error wraps [ErrRange], and dst is returned as it was. AppendText does not allocate if dst has room for 25 bytes.
func (d Duration) AppendText(dst []byte) ([]byte, error) {
	if !d.IsValid() {
		return dst, errInvalid(d)
	}
	text := d.AppendFormat(dst, defaultDigits)
	if back, err := Parse(string(text[len(dst):])); err == nil && back == d {
		return text, nil
	}
	return append(appendSeconds(dst, float64(d)), 's'), nil
}

// appendSeconds appends the fewest digits that tell s, with an exponent where C's %.17g
// has one.
func appendSeconds(dst []byte, s float64) []byte {
	if 1e-4 <= s && s < 1e17 {
		return strconv.AppendFloat(dst, s, 'f', -1, 64)
	}
	return strconv.AppendFloat(dst, s, 'e', -1, 64)
}

// MarshalText returns the canonical text of d, see [Duration.AppendText]. Inside
// JSON it is a string, as RFC 23 has it; where Flux stores a number of seconds, as in a
// jobspec, use [Duration.Seconds]. The error wraps
// [ErrRange] if d is not valid.
func (d Duration) MarshalText() ([]byte, error) {
	if !d.IsValid() {
		return nil, errInvalid(d)
	}
	return d.AppendText(make([]byte, 0, maxText))
}

// String returns the canonical text of d, see [Duration.AppendText], or text like
// "Duration(-1)" if d is not valid.
func (d Duration) String() string {
	text, err := d.AppendText(make([]byte, 0, maxText))
	if err != nil {
		return d.Format(0)
	}
	return string(text)
}
