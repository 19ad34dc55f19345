package fsd

// AppendFormat formats what the reference formats, seconds as a float64.
var AppendFormat = appendFormat

// ParseSeconds returns what the reference does, to the bit.
func ParseSeconds(s string) (float64, error) {
	seconds, _, err := parse(s)
	return seconds, err
}
