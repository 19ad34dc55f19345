package purge

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

const watermarkPrefix = "watermark "

// AppendWatermark appends the text of a watermark to dst, such as "watermark
// 0017e9fb8df16c2e". The length is always the same, so text that was cut short
// is never a lower watermark.
func AppendWatermark(dst []byte, id jobid.ID) []byte {
	return fmt.Appendf(dst, "%s%016x", watermarkPrefix, uint64(id))
}

// ParseWatermark parses the text of AppendWatermark, and nothing else. The error names the offset.
func ParseWatermark(text []byte) (jobid.ID, error) {
	digits, ok := bytes.CutPrefix(text, []byte(watermarkPrefix))
	if !ok {
		return 0, syntax(text, 0, "not a watermark")
	}
	id, err := strconv.ParseUint(string(digits), 16, 64)
	if err != nil || !bytes.Equal(AppendWatermark(nil, jobid.ID(id)), text) {
		return 0, syntax(text, len(watermarkPrefix), "not 16 digits")
	}
	return jobid.ID(id), nil
}

func syntax(text []byte, at int, reason string) error {
	return fmt.Errorf("purge: offset %d: %s: %w: %s", at, guard.Quote(text), errRecord, reason)
}
