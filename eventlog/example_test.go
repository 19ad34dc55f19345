package eventlog_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/joblife/joblife/eventlog"
)

// A log is written line by line and read from start to end.
func Example() {
	var log []byte
	for i, name := range []string{"submit", "depend", "priority"} {
		e := eventlog.Entry{Timestamp: 1552593348 + eventlog.Timestamp(i), Name: name}
		if name == "priority" {
			e.Context = []byte(`{"priority":16}`)
		}
		var err error
		if log, err = eventlog.AppendEntry(log, e); err != nil {
			fmt.Println(err)
			return
		}
	}
	for e, err := range eventlog.Entries(log) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%v %s%s\n", e.Timestamp.Time(), e.Name, e.Context)
	}
	// Output:
	// 2019-03-14 19:55:48 +0000 UTC submit
	// 2019-03-14 19:55:49 +0000 UTC depend
	// 2019-03-14 19:55:50 +0000 UTC priority{"priority":16}
}

func ExampleEntries() {
	log := []byte(`{"timestamp":1552593348.073045,"name":"submit","context":{"userid":5588,"urgency":16,"flags":0,"version":1}}
{"timestamp":1552593348.088391,"name":"validate","context":{}}
{"timestamp":1552593348.0`)
	for e, err := range eventlog.Entries(log) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %-9s%s\n", e.Timestamp.Time().Format("15:04:05.000"), e.Name, e.Context)
	}
	// Output:
	// 19:55:48.073 submit   {"userid":5588,"urgency":16,"flags":0,"version":1}
	// 19:55:48.088 validate {}
	// eventlog: line 3: offset 172: torn last line
}

func ExampleParse() {
	e, err := eventlog.Parse([]byte(`{"timestamp":42,"name":"finish","context":{"status":0}}`))
	fmt.Println(e.Timestamp, e.Name, string(e.Context), err)

	_, err = eventlog.Parse([]byte(`{"timestamp":42,"name":"finish","name":"start"}`))
	var syntax *eventlog.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Println(syntax.Offset, syntax.Err, errors.Is(err, eventlog.ErrSyntax))
	}
	// Output:
	// 42.0 finish {"status":0} <nil>
	// 32 duplicate key "name" true
}

func ExampleDecoder() {
	log := strings.NewReader(`{"timestamp":1,"name":"start"}` + "\n" + `{"timestamp":2,"name":"finish"}` + "\n")
	d := eventlog.NewDecoder(log, eventlog.DecoderOptions{MaxLine: 4096})
	for e, err := range d.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Line(), d.Offset(), e.Name)
	}
	// Output:
	// 1 31 start
	// 2 63 finish
}

// A log from outside is read within limits.
func ExampleDecoderOptions() {
	limits := eventlog.DecoderOptions{MaxLine: 64, MaxDepth: 3, MaxEvents: 1, StrictKeys: true}
	for _, log := range []string{
		`{"timestamp":1,"name":"memo","context":{"note":"` + strings.Repeat("x", 64) + `"}}`,
		`{"timestamp":1,"name":"memo","context":{"a":{"b":{}}}}`,
		`{"timestamp":1,"name":"start"}` + "\n" + `{"timestamp":2,"name":"finish"}`,
		`{"timestamp":1,"name":"start","host":"n1"}`,
	} {
		for _, err := range eventlog.NewDecoder(strings.NewReader(log+"\n"), limits).All() {
			if err != nil {
				fmt.Println(errors.Is(err, eventlog.ErrLimit), err)
			}
		}
	}
	// Output:
	// true eventlog: line 1: offset 64: line longer than 64 bytes
	// true eventlog: line 1: offset 45: nested too deep
	// true eventlog: line 2: offset 31: more than 1 entries
	// false eventlog: line 1: offset 37: host: unknown key
}

func ExampleEntry_Clone() {
	d := eventlog.NewDecoder(strings.NewReader(`{"timestamp":1,"name":"memo","context":{"a":1}}`+"\n"), eventlog.DecoderOptions{})
	var kept []eventlog.Entry
	for e, err := range d.All() {
		if err == nil {
			kept = append(kept, e.Clone())
		}
	}
	fmt.Println(string(kept[0].Context))
	// Output: {"a":1}
}

func ExampleTimestamp() {
	t := eventlog.Timestamp(1552593348.0881419)
	fmt.Println(t, t.Time())
	fmt.Println(eventlog.FromTime(t.Time()) == t)
	// Output:
	// 1552593348.0881419 2019-03-14 19:55:48.088141918 +0000 UTC
	// true
}
