// Package errpage keeps what a program says when something is wrong on one page,
// testdata/errors.golden, which people read as they would at three in the morning: what
// happened, where, and what helps.
//
//	errpage.Page{Name: "purge", Run: …, Sources: []string{"."}, Cases: …}.Check(t, *update)
package errpage

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A Page has what is provoked of a program, and what is not.
type Page struct {
	Name      string
	Run       func(stdin io.Reader, args ...string) (status int, stdout, stderr string)
	Sources   []string            // folders whose texts the cases provoke
	Elsewhere map[string][]string // why a text is not provoked → texts as the source has them
	Cases     []Case
}

// A Case is one way to provoke a text, in an empty folder.
type Case struct {
	When    string // what is wrong
	Args    string // words; quotes keep one together: 'a b'
	Stdin   string
	Prepare func(t *testing.T) // is called in the folder; nil: it stays empty
	Status  int                // of the exit: 2 for bad usage, else 1; 0 is a warning
}

// What differs from run to run.
var differs = []struct {
	text *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\b(process |user |user add |user-)\d+`), "${1}N"},
	{regexp.MustCompile(`(127\.0\.0\.1|localhost):\d+`), "$1:PORT"},
	{regexp.MustCompile(`time=\S+ `), ""},
	{regexp.MustCompile(`ƒ[1-9A-HJ-NP-Za-km-z]{6,}`), "ƒID"},
}

// noise is what Go says, and not the program.
var noise = regexp.MustCompile(`%!|strconv\.|goroutine |<nil>|\*[a-z]+\.[A-Z]|exit status|Go (value|struct)|(^|[ (])json: |(: .*){6}`)

// Check runs the cases, and compares their texts with the page, which update rewrites.
func (p Page) Check(t *testing.T, update bool) {
	if runtime.GOOS != "linux" {
		t.Skip("the texts of the system are those of Linux")
	}
	golden := "testdata/errors.golden"
	missing := make(map[string]bool)
	for _, dir := range p.Sources {
		texts(t, dir, missing)
	}
	page := new(strings.Builder)
	for _, c := range p.Cases {
		t.Run(c.When, func(t *testing.T) { p.provoke(t, c, page, missing) })
	}
	for _, why := range slices.Sorted(maps.Keys(p.Elsewhere)) {
		fmt.Fprintf(page, "\nnot provoked here: %s\n", why)
		for _, text := range p.Elsewhere[why] {
			fmt.Fprintf(page, "  %s\n", strings.TrimSpace(text))
			if !missing[text] {
				t.Errorf("%q is provoked, or in no source", text)
			}
			delete(missing, text)
		}
	}
	for text := range missing {
		t.Errorf("%q is provoked by no case", text)
	}
	got := page.String()[1:]
	if update {
		_ = os.WriteFile(golden, []byte(got), 0o644) // or what follows fails
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != got {
		t.Errorf("%v; read the difference, then run with -update; got:\n%s\nwant:\n%s", err, got, want)
	}
}

// provoke adds a case to the page, and takes its texts off those that are missing.
func (p Page) provoke(t *testing.T, c Case, page *strings.Builder, missing map[string]bool) {
	t.Chdir(t.TempDir())
	dir, _ := os.Getwd()
	_ = os.Chmod(dir, 0o700) // whatever the umask: a program may ask that nobody else writes it
	if c.Prepare != nil {
		c.Prepare(t)
	}
	quoted := false
	args := strings.FieldsFunc(c.Args, func(r rune) bool { quoted = quoted != (r == '\''); return r == ' ' && !quoted })
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "'", "")
	}
	status, stdout, text := p.Run(strings.NewReader(c.Stdin), args...)
	for of := range missing {
		if pattern(of).MatchString(text) {
			delete(missing, of)
		}
	}
	fmt.Fprintf(page, "\n%s\n  $ %s\n", c.When, strings.TrimSpace(p.Name+" "+c.Args))
	seen := make(map[string]bool)
	for line := range strings.Lines(text) {
		shown := strings.ReplaceAll(strings.TrimSuffix(line, "\n"), dir, "DIR")
		for _, d := range differs {
			shown = d.text.ReplaceAllString(shown, d.by)
		}
		fmt.Fprintf(page, "  %s\n", shown)
		if seen[line] || noise.MatchString(shown) || !regexp.MustCompile("^(Run )?"+p.Name+"[: ]").MatchString(line) {
			t.Errorf("said twice, noise, or of nobody: %s", line)
		}
		seen[line] = true
	}
	if status > 0 {
		fmt.Fprintf(page, "  status %d\n", status)
	}
	if status != c.Status || text == "" || status == 2 && stdout != "" || strings.Contains(text, " -h for ") != (status == 2) {
		t.Errorf("status %d: %s", status, text)
	}
}

// verb is one of package fmt.
var verb = regexp.MustCompile(`%[-+# 0-9.\[\]*]*[a-zA-Z]`)

// pattern finds what a text may have become.
func pattern(of string) *regexp.Regexp {
	parts := verb.Split(strings.TrimSpace(of), -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(strings.Join(parts, `(?s:.*)`))
}

// made finds a text that a function makes for people.
var made = regexp.MustCompile(`\b(?:(?:Errorf|errors\.New|wrong|warnf|printf|errorf|fault|fail|[lL]og\.Warn|[lL]og\.Error)\(|` +
	`Fprint\w*\((?:\w+\.)*[sS]tderr,)[^"(\n]*("(?:[^"\\\n]|\\.)*")`)

// texts adds the texts of the Go files in a folder that have a word.
func texts(t *testing.T, dir string, to map[string]bool) {
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(dir, err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made.FindAllSubmatch(source, -1) {
			text, err := strconv.Unquote(string(m[1]))
			if err == nil && !strings.HasSuffix(file, "_test.go") && word.MatchString(verb.ReplaceAllString(text, "")) {
				to[text] = true
			}
		}
	}
}

var word = regexp.MustCompile(`[a-z]{3}`)
