package conformance

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// A table is what a data file says of an RFC.
type table struct {
	file, title string
	number      int
	rows        []row
}

// A row is what a line says of a clause. It has tests, or a quotation of the file that tells
// the embedder, or a reason.
type row struct {
	line                   int
	section, digest, words string
	tests                  []name
	file, quote            string
	reason                 string
}

// A name is a test and the folder of its package.
type name struct{ dir, test string }

var (
	headLine    = regexp.MustCompile(`^# RFC (([1-9]\d*)/\S.*)$`)
	digestField = regexp.MustCompile(`^[0-9a-f]{8}#[1-9]\d*$`)
	testName    = regexp.MustCompile(`^([\w./-]+)\.((?:Test|Fuzz|Example)\w*)$`)
	quotation   = regexp.MustCompile(`^(\S+): "(.+)"$`)
)

// readTable reads a data file. Each of its errors begins with file and line.
func readTable(file, text string) (t table, err error) {
	t.file = file
	var errs []error
	number := 0
	for line := range strings.Lines(text) {
		line, number = strings.TrimRight(line, "\r\n"), number+1
		if m := headLine.FindStringSubmatch(line); number == 1 && m != nil {
			t.title = m[1]
			fmt.Sscan(m[2], &t.number)
			if want := fmt.Sprintf("rfc%s.txt", m[2]); path.Base(file) != want {
				errs = append(errs, fmt.Errorf("%s:1: the file of RFC %s is %s", file, m[2], want))
			}
			continue
		}
		if number == 1 {
			errs = append(errs, fmt.Errorf(`%s:1: want "# RFC %s/Title"`, file, strings.Trim(path.Base(file), "rfc.tx")))
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, err := readRow(line)
		if r.line = number; err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", file, number, err))
			continue
		}
		t.rows = append(t.rows, r)
	}
	if number == 0 {
		errs = append(errs, fmt.Errorf("%s:1: the file is empty", file))
	}
	return t, errors.Join(errs...)
}

func readRow(line string) (r row, err error) {
	fields := strings.SplitN(line, " | ", 4)
	if len(fields) != 4 {
		return r, fmt.Errorf(`%d fields, want 4 with " | " between them`, len(fields))
	}
	for i, f := range fields {
		if f == "" || f != strings.Join(strings.Fields(f), " ") {
			return r, fmt.Errorf("field %d is empty or has spaces too many: %q", i+1, f)
		}
	}
	if r.section, r.digest, r.words = fields[0], fields[1], fields[2]; !digestField.MatchString(r.digest) {
		return r, fmt.Errorf(`%q is no digest, such as "0123abcd#1"`, r.digest)
	}
	kind, rest, _ := strings.Cut(fields[3], " ")
	switch kind {
	case "test":
		for n := range strings.SplitSeq(rest, ", ") {
			m := testName.FindStringSubmatch(n)
			if m == nil || path.Clean(m[1]) != m[1] || strings.HasPrefix(m[1], "/") {
				return r, fmt.Errorf(`%q is no test, such as "jobstate/fsd.TestX", or "..TestX" of the root`, n)
			}
			r.tests = append(r.tests, name{m[1], m[2]})
		}
	case "embedder":
		m := quotation.FindStringSubmatch(rest)
		if m == nil || strings.Count(m[2], " ") < 2 {
			return r, fmt.Errorf(`%q is no quotation of three words, such as: perilog/doc.go: "a few words"`, rest)
		}
		r.file, r.quote = m[1], m[2]
	case "none:":
		if r.reason = rest; rest == "" {
			return r, errors.New("there is no reason")
		}
	default:
		return r, fmt.Errorf(`the proof %q begins with none of "test ", "embedder " and "none: "`, fields[3])
	}
	return r, nil
}
