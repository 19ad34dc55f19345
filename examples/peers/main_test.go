package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestSidesAgree checks small sizes of all tasks, and measures each side once.
func TestSidesAgree(t *testing.T) {
	var out strings.Builder
	all := tasks(50)
	if err := compare(&out, all, 0); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\|.*\| (as fast|.*[0-9]x (faster|slower\**)) +\|$`).FindAllString(out.String(), -1)
	peers := 0
	for _, task := range all {
		if task.sides[0].name != us {
			t.Errorf("%s: the first side is %s", task.name, task.sides[0].name)
		}
		peers += len(task.sides) - 1
		if strings.Count(out.String(), "| "+task.name+" ") != 1 {
			t.Errorf("%s: not in the table", task.name)
		}
	}
	if len(rows) != peers || peers < 20 {
		t.Errorf("%d rows for %d peers:\n%s", len(rows), peers, &out)
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSpace(line))); n > 82 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestNoTableUnlessAllGiveOneAnswer(t *testing.T) {
	answer := func(a any) func() any { return func() any { return a } }
	var out strings.Builder
	err := compare(&out, []task{{"count", []side{{us, answer(1), nil}, {"peer", answer(1), nil}, {"other", answer(2), nil}}}}, 0)
	if err == nil || err.Error() != `count: joblife answers "1", other "2"` || out.Len() > 0 {
		t.Errorf("%v, printed %q", err, &out)
	}
	if err := compare(broken{}, nil, 0); err == nil {
		t.Error("an output that fails is not told")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk is full") }

func TestWhatTheTableSays(t *testing.T) {
	for _, c := range []struct {
		us, peer time.Duration
		want     string
	}{
		{100, 234, "2.3x faster"}, {100, 104, "as fast"}, {104, 100, "as fast"}, {300, 100, "**3.0x slower**"}, {1, 12345, "12345x faster"},
	} {
		if got := verdict(c.us, c.peer); got != c.want {
			t.Errorf("%d against %d: %s, want %s", c.us, c.peer, got, c.want)
		}
	}
	for d, want := range map[time.Duration]string{7: "7ns", 1504: "1.5µs", 123456789: "123ms", 2 * time.Second: "2s"} {
		if got := short(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}
