package purge

import (
	"bytes"
	"strings"

	"github.com/joblife/joblife/jobstate/jobid"
)

// watermarkPrefix begins the text of a watermark.
const watermarkPrefix = "watermark "

const hexDigits = "0123456789abcdef"

// AppendWatermark appends the text of a watermark to dst, such as "watermark
// 0017e9fb8df16c2e". The length is always the same, so text that was cut short
// is never a lower watermark.
func AppendWatermark(dst []byte, id jobid.ID) []byte {
	dst = append(dst, watermarkPrefix...)
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[id>>shift&15])
	}
	return dst
}

// ParseWatermark parses the text of AppendWatermark, and nothing else. The error
// has category ErrRecord and names the offset.
func ParseWatermark(text []byte) (jobid.ID, error) {
	digits, ok := bytes.CutPrefix(text, []byte(watermarkPrefix))
	if !ok {
		return 0, syntax(text, 0, "not a watermark")
	}
	at := len(watermarkPrefix)
	if len(digits) != 16 {
		return 0, syntax(text, at, "not 16 digits")
	}
	var id jobid.ID
	for i, c := range digits {
		d := strings.IndexByte(hexDigits, c)
		if d < 0 {
			return 0, syntax(text, at+i, "not a digit")
		}
		id = id<<4 | jobid.ID(d)
	}
	return id, nil
}
