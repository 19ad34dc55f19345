package dirstore

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

// The files of a job are those of RFC 16, byte for byte, so their check digits are beside
// them, in one more file. It is overwritten in place and not synced: what a crash leaves of
// it is true, or cannot be read. For that there are three rules.
//
//   - Digits are written when their file is durable.
//   - Those of a log are of what it had then. Logs only grow, so they stay true.
//   - Before R is replaced its digits are dropped, durably: a crash must not leave the
//     new R and the digits of the old one.

// sum returns check digits, CRC-32C.
func sum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

// sums are the check digits of a job. Without a file they are zero, and cover nothing.
type sums struct {
	there, bad bool  // whether there is a file, and whether it cannot be read
	size       int64 // how much of the eventlog is covered
	eventlog   uint32
	jobspec, r objectSum
}

// An objectSum is the check digits of a file that is written whole, or why there are none.
type objectSum int64

const (
	sumNone    objectSum = 0  // there was never a file
	sumDropped objectSum = -1 // the file is being replaced
)

// sumOf returns the check digits of an object, which are not 0.
func sumOf(data []byte) objectSum { return 1<<32 | objectSum(sum(data)) }

// text returns what the file has. Its length is always the same.
func (c sums) text() []byte {
	text := fmt.Appendf(nil, "eventlog %020d %08x jobspec %09x R %09x", c.size, c.eventlog, c.jobspec, c.r)
	return fmt.Appendf(text, " %08x\n", sum(text))
}

func readSums(fsys folder, dir string) (c sums, err error) {
	text, err := readFile(fsys, filepath.Join(dir, sumsKey), 1<<10)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sums{}, nil
	case errors.Is(err, errLimit):
		return sums{there: true, bad: true}, nil
	case err != nil:
		return sums{}, fmt.Errorf("%s: %w", sumsKey, cause(err))
	}
	var self uint32
	_, err = fmt.Sscanf(string(text), "eventlog %d %x jobspec %x R %x %x", &c.size, &c.eventlog, &c.jobspec, &c.r, &self)
	if err != nil || c.size < 0 || string(c.text()) != string(text) {
		return sums{there: true, bad: true}, nil
	}
	c.there = true
	return c, nil
}

// write writes the file. It is made durable where what the disk has could be wrong.
func (c *sums) write(fsys folder, dir string, durable bool) error {
	flag := os.O_WRONLY
	if !c.there {
		flag |= os.O_CREATE | os.O_EXCL
	}
	f, err := fsys.OpenFile(filepath.Join(dir, sumsKey), flag, fileMode)
	if err != nil {
		return err
	}
	text := c.text()
	if c.bad {
		durable, err = true, f.Truncate(0)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if err = finish(f, text, durable); err == nil {
		c.there, c.bad = true, false
	}
	return err
}

// append notes what an eventlog has behind what is covered.
func (c *sums) append(lines []byte) {
	c.size += int64(len(lines))
	c.eventlog = crc32.Update(c.eventlog, crc32.MakeTable(crc32.Castagnoli), lines)
}

// verifyLog returns an error if the eventlog does not begin with what it had.
func (c sums) verifyLog(text []byte) error {
	if int64(len(text)) < c.size || sum(text[:c.size]) != c.eventlog {
		return fmt.Errorf("%s: %w", eventlogKey, errSum)
	}
	return nil
}

// verify returns an error if an object is not what it was, and drops it.
func (o objectSum) verify(key string, data *[]byte) error {
	if o <= 0 || o == sumOf(*data) {
		return nil
	}
	*data = nil
	return fmt.Errorf("%s: %w", key, errSum)
}
