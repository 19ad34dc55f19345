package flux

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"
)

// The levels of a LogEntry, from the most urgent on.
const (
	LogEmerg = iota
	LogAlert
	LogCrit
	LogErr
	LogWarning
	LogNotice
	LogInfo
	LogDebug
)

// A LogEntry is for the log of a broker, which flux dmesg shows.
type LogEntry struct {
	Level int
	Name  string // of the program, without a space
	Text  string // one entry a line; empty lines count for nothing
}

// Log sends entries to the log of the broker of rank 0 without a wait, and without an answer.
func (c *Conn) Log(e LogEntry) error {
	for line := range strings.FieldsFuncSeq(e.Text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		m := NewRequest("log.append", e.append(line))
		m.Flags |= FlagNoResponse
		if err := c.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// ASCII reports whether Flux writes ids with f for ƒ where an environment is: it says so, or its
// locale is not of UTF-8.
func ASCII(lookup func(string) (string, bool)) bool {
	get := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	locale := strings.ToUpper(cmp.Or(get("LC_ALL"), get("LC_CTYPE"), get("LANG")))
	_, forced := lookup("FLUX_F58_FORCE_ASCII")
	return forced || !strings.Contains(strings.ReplaceAll(locale, "-", ""), "UTF8")
}

// append returns one line of the log in the form of RFC 5424, without a NUL. Its first number
// is 8 times the level, where that RFC has the facility first: flux-core reads it so.
func (e *LogEntry) append(line string) []byte {
	return fmt.Appendf(nil, "<%d>1 %s 0 %s %d - - %s", 8*min(max(e.Level, LogEmerg), LogDebug),
		time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), cmp.Or(e.Name, "-"), os.Getpid(), line)
}
