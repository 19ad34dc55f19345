//go:build unix

package tutorial

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pages are the folders of the programs that each page shows: the first in whole, of the others
// a part. The page's first block of commands runs with the first, and so on; what is left, with
// the last.
var pages = map[string][]string{
	"scheduler": {"scheduler"},
	"manager":   {"manager"},
	"logs":      {"logs"},
	"test":      {"policy/testdata", "policy", "policy"},
}

const maxWords = 600 // of a page, code included

var (
	fences = regexp.MustCompile("(?s)```(\\w*)\n(.*?)```\n")
	links  = regexp.MustCompile(`\]\(([^:)]+)\)`) // to files
	prompt = regexp.MustCompile(`(?m)^\$ (.*\n)`)
	took   = regexp.MustCompile(`\d+\.\d+s\b`) // how long a test took
)

func TestPages(t *testing.T) {
	if os.Getenv("JOBLIFE_DEEP") == "" {
		t.Skip("it builds each program, and tests one: set JOBLIFE_DEEP=1")
	}
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	require.Len(t, files, len(pages))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		t.Run(name, func(t *testing.T) {
			t.Parallel() // one of them waits for a job
			check(t, read(t, file), pages[name])
		})
	}
}

// A shell comes to its mkdir after the next hello of its node, which has the start sent again. A
// second shell that came when the first job is forgotten would run it again.
func TestTheManagerRunsAJobOnce(t *testing.T) {
	dir := builtManager(t)
	sh := `#!/bin/sh
case $3 in *job-1.0) if mkdir "$0.first" 2>&-; then sleep .2; else sleep 2; fi; esac
exec /bin/sh "$@"
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sh"), []byte(sh), 0o777))
	cmd := exec.Command(filepath.Join(dir, "manager"), "echo ran >>trace", "sleep 4")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "ran\n", read(t, filepath.Join(dir, "trace")))
}

// A job that its node has lost fails, and the manager goes on.
func TestTheManagerForgetsALostJob(t *testing.T) {
	dir := builtManager(t)
	_ = inFolder(dir, "./manager 'sleep 1; kill -9 $PPID' || sleep 1; rm -r node-0/job-1.0").Run()
	out, err := inFolder(dir, "./manager").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "jobs left: 1\nforget node-0/job-1.0: status \nforget node-0/job-1.1: status 0\n", string(out))
}

// builtManager returns a folder with the program.
func builtManager(t *testing.T) string {
	if os.Getenv("JOBLIFE_DEEP") == "" {
		t.Skip("it builds the program, and waits: set JOBLIFE_DEEP=1")
	}
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", dir, "./manager").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// check checks a page that shows the programs of some folders.
func check(t *testing.T, page string, folders []string) {
	require.NotEmpty(t, folders, "no program belongs to the page")
	words := len(strings.Fields(page))
	require.LessOrEqual(t, words, maxWords)
	require.Contains(t, page, fmt.Sprintf("\n\n%d minutes. ", (words+199)/200), "how long %d words take", words)
	dir, names, programs := module(t), make([]string, len(folders)), make([]string, len(folders))
	for i, folder := range folders {
		files, err := filepath.Glob(folder + "/*.go")
		require.NoError(t, err)
		require.Len(t, files, 1)
		names[i], programs[i] = filepath.Base(files[0]), read(t, files[0])
	}
	for _, link := range links.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		_, err := os.Stat("../../docs/" + link[1])
		require.NoError(t, err)
	}
	missing, block := programs[0], 0
	for _, fence := range fences.FindAllStringSubmatch(page, -1) {
		switch text := fence[2]; fence[1] {
		case "go":
			require.Contains(t, strings.Join(programs, "\x00"), text, "no program has this")
			missing = strings.Replace(missing, text, "", 1)
		case "console":
			i := min(block, len(folders)-1)
			block++
			require.NoError(t, os.WriteFile(filepath.Join(dir, names[i]), []byte(programs[i]), 0o666))
			follow(t, dir, text)
		case "sh":
			require.Regexp(t, `^go mod init \w+\ngo mod edit .+\ngo mod tidy\n$`, text)
			edit := strings.ReplaceAll(strings.TrimSuffix(text, "go mod tidy\n"), "/path/to/clone", root(t)) // module has tidied
			out, err := inFolder(dir, strings.Replace(edit, "go mod init", "go mod edit -module", 1)).CombinedOutput()
			require.NoError(t, err, "%s", out)
		default:
			t.Errorf("a block is %q", fence[1])
		}
	}
	require.GreaterOrEqual(t, block, len(folders), "the page does not run each program")
	require.Empty(t, strings.TrimSpace(missing), "the page lacks this")
}

func read(t *testing.T, name string) string {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}

func root(t *testing.T) string {
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// module returns a new folder with a module that requires joblife, and does not say where it is.
func module(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, _, _ := strings.Cut(read(t, "../"+name), "\nreplace (")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	return dir
}

// inFolder returns a command line for the shell, which uses the module of the folder.
func inFolder(dir, line string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	return cmd
}

// follow gives the commands of a block to a shell, and wants what the block says that they
// print. A download is a copy.
func follow(t *testing.T, dir, block string) {
	commands, output := prompt.FindAllStringSubmatch(block, -1), prompt.Split(block, -1)
	require.Empty(t, output[0])
	for i, command := range commands {
		cmd := inFolder(dir, `curl() { cp "`+root(t)+`/${2#https://github.com/joblife/joblife/raw/HEAD/}" .; }`+"\n"+command[1])
		out, err := os.Create(filepath.Join(dir, "out")) // no pipe: what the command leaves may run on
		require.NoError(t, err)
		cmd.Stdout, cmd.Stderr = out, out
		_ = cmd.Run() // what fails says so
		require.NoError(t, out.Close())
		require.Equal(t, took.ReplaceAllString(output[i+1], "…s"), took.ReplaceAllString(read(t, out.Name()), "…s"), command[1])
	}
}
