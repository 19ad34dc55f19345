package conformance

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A clause is one keyword of an RFC.
type clause struct{ section, digest, keyword, paragraph string }

var (
	keyword   = regexp.MustCompile(`\b((MUST|SHALL)( NOT)?|REQUIRED)\b`)
	underline = regexp.MustCompile(`^(#+|\*+|=+|-+|~+|\^+|"+|\.+)$`)
	listItem  = regexp.MustCompile(`^\s*([-*+•]|#\.|\d+[.)])\s+\S`)
)

// clauses finds the clauses of an RFC, in its order. A paragraph ends before an empty line
// and before a list item.
func clauses(text string) (found []clause) {
	section := ""
	var paragraph []string
	end := func() {
		text := strings.Join(strings.Fields(strings.Join(paragraph, " ")), " ")
		paragraph = nil
		if strings.HasPrefix(text, `The key words "MUST"`) {
			return
		}
		sum := sha256.Sum256([]byte(text))
		for i, word := range keyword.FindAllString(text, -1) {
			found = append(found, clause{section, fmt.Sprintf("%x#%d", sum[:4], i+1), word, text})
		}
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, " \t\r")
		switch {
		case line == "":
			end()
			continue
		case underline.MatchString(line) && len(line) > 1 && len(paragraph) == 1 && lines[i-1][0] > ' ':
			section, paragraph = paragraph[0], nil
			continue
		case listItem.MatchString(line):
			end()
		}
		paragraph = append(paragraph, line)
	}
	end()
	return found
}

// compare says where the rows are not those of the RFC's clauses, one for one. It prints a
// beginning of each row that is missing.
func compare(t table, text string) error {
	var errs []error
	whole := strings.ToLower(strings.Join(strings.Fields(text), " "))
	rows, wants := t.rows, clauses(text)
	for len(rows) > 0 || len(wants) > 0 {
		switch {
		case len(rows) > 0 && !slices.ContainsFunc(wants, func(c clause) bool { return c.digest == rows[0].digest }):
			errs = append(errs, fmt.Errorf("%s:%d: %s is no clause here: %s", t.file, rows[0].line, rows[0].digest, rows[0].words))
			rows = rows[1:]
			continue
		case len(rows) == 0 || rows[0].digest != wants[0].digest:
			c := wants[0]
			errs = append(errs, fmt.Errorf("%s: a row is missing: %s | %s | (%s of: %s) | ", t.file, c.section, c.digest, c.keyword, c.paragraph))
			wants = wants[1:]
			continue
		case rows[0].section != wants[0].section:
			errs = append(errs, fmt.Errorf("%s:%d: section %q, want %q", t.file, rows[0].line, rows[0].section, wants[0].section))
		case strings.Contains(whole, strings.ToLower(strings.TrimRight(rows[0].words, "."))):
			errs = append(errs, fmt.Errorf("%s:%d: these are the words of the RFC: %s", t.file, rows[0].line, rows[0].words))
		}
		rows, wants = rows[1:], wants[1:]
	}
	return errors.Join(errs...)
}
