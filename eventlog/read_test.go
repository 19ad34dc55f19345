package eventlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
)

// collect returns the entries of a log up to its error.
func collect(log []byte) (entries []eventlog.Entry, err error) {
	for e, err := range eventlog.Entries(log) {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// good is a line that is fine, to put before those that are not.
const good = `{"timestamp":1.5,"name":"x"}` + "\n"

// badLines are the ways in which a line can be wrong.
var badLines = []struct {
	line     string
	offset   int
	text     string
	category error
}{
	{"", 0, "empty line", eventlog.ErrSyntax},
	{" \t ", 0, "empty line", eventlog.ErrSyntax},
	{"\r", 0, "carriage return before the newline", eventlog.ErrSyntax},
	{"foo", 1, `unexpected byte "o"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x"}` + "\r", 28, "carriage return before the newline", eventlog.ErrSyntax},
	{"\uFEFF" + `{"timestamp":1.0,"name":"x"}`, 0, "byte order mark", eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x"}` + "\uFEFF", 28, `text after the value: byte "\xef"`, eventlog.ErrSyntax},
	{"\x00", 0, `unexpected byte "\x00"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x"}` + "\x00", 28, `text after the value: byte "\x00"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"` + "\x00" + `"}`, 25, `control character "\x00" in a string`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,` + "\x00" + `"name":"x"}`, 17, `unexpected byte "\x00"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x","context":{"a":"` + "\x00" + `"}}`, 44, `control character "\x00" in a string`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x\u0000"}`, 24, "name: must not contain U+0000", eventlog.ErrEntry},
	{`{"timestamp":1.0,"name":"x","context":{"a\u0000":1}}`, 39, "U+0000 in a key", eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":""}`, 24, "name: must not be empty", eventlog.ErrEntry},
	{`{"timestamp":1.0,"name":"` + "\xff" + `"}`, 25, `invalid UTF-8: byte "\xff" in a string`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"\ud800"}`, 25, `invalid UTF-8: escape of half a surrogate pair`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x","name":"y"}`, 28, `duplicate key "name"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x","timestamp":2.0}`, 28, `duplicate key "timestamp"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x","context":{},"context":{}}`, 41, `duplicate key "context"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x","context":{"a":{"b":1,"b":1}}}`, 50, `duplicate key "b"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x","\u006eame":"y"}`, 28, `duplicate key "name"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x"`, 27, "unexpected end", eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x"}}`, 28, `text after the value: byte "}"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x"},`, 28, `text after the value: byte ","`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x",}`, 28, `unexpected byte "}"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":x}`, 24, `unexpected byte "x"`, eventlog.ErrSyntax},
	{`{"timestamp":01,"name":"x"}`, 14, `unexpected byte "1"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x","context":`, 38, "unexpected end", eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x","context":}`, 38, `unexpected byte "}"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x","context":{}`, 40, "unexpected end", eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x","context":{"a":1]}`, 44, `unexpected byte "]"`, eventlog.ErrSyntax},
	{`{"timestamp":1.0,"name":"x","context":{"a":99999999999999999999}}`, 43, `number out of range: "99999999999999999999"`, eventlog.ErrSyntax},
	{`{"timestamp":true,"name":"x","name":1}`, 29, `duplicate key "name"`, eventlog.ErrSyntax}, // syntax goes first
	{`[{"timestamp":1.0,"name":"x"}]`, 0, "must be an object", eventlog.ErrEntry},
	{`{}`, 0, "timestamp: key is missing", eventlog.ErrEntry},
	{`{"context":{}}`, 0, "timestamp: key is missing", eventlog.ErrEntry},
	{`{"timestamp":1.0,"name":"x","context":{"a":` + strings.Repeat("[", 2046) + "1" + strings.Repeat("]", 2046) + `}}`, 2089, "nested too deep", eventlog.ErrLimit},
	{`{"timestamp":1.0,"name":"x","other":` + strings.Repeat("[", 2048) + strings.Repeat("]", 2048) + `}`, 2083, "nested too deep", eventlog.ErrLimit},
	{`{"timestamp":1.0,"name":"` + strings.Repeat("x", 1<<20) + `"}`, 1 << 20, "line longer than 1048576 bytes", eventlog.ErrLimit},
}

// EL-2.
func TestABadLineIsNamedByLineAndOffset(t *testing.T) {
	for _, tt := range badLines {
		_, err := eventlog.Parse([]byte(tt.line))
		require.EqualError(t, err, fmt.Sprintf("eventlog: line 1: offset %d: %s", tt.offset, tt.text), "%.80q", tt.line)
		requireSyntaxError(t, err, 1, int64(tt.offset), tt.category)

		_, err = eventlog.Parse([]byte(tt.line + "\n"))
		requireSyntaxError(t, err, 1, int64(tt.offset), tt.category)

		entries, err := collect([]byte(good + good + tt.line + "\n" + good))
		require.Len(t, entries, 2)
		requireSyntaxError(t, err, 3, int64(2*len(good)+tt.offset), tt.category)
	}
}

// requireSyntaxError checks the facts of an error.
func requireSyntaxError(t *testing.T, err error, line int, offset int64, category error) {
	t.Helper()
	var syntax *eventlog.SyntaxError
	require.ErrorAs(t, err, &syntax)
	require.Equal(t, line, syntax.Line)
	require.Equal(t, offset, syntax.Offset)
	for _, c := range []error{eventlog.ErrSyntax, eventlog.ErrEntry, eventlog.ErrTorn, eventlog.ErrLimit} {
		require.Equal(t, c == category, errors.Is(err, c), "%v is %v", err, c)
	}
	require.ErrorIs(t, err, syntax.Err)
}

func TestAnErrorQuotesAtMost64BytesAndKeepsNone(t *testing.T) {
	long := strings.Repeat("k", 200)
	line := []byte(`{"timestamp":1.0,"name":"x","` + long + `":1,"` + long + `":2}`)
	_, err := eventlog.Parse(line)
	clear(line)
	require.EqualError(t, err, `eventlog: line 1: offset 233: duplicate key "`+long[:64]+`"`)
}

func TestTheDeepestLineIsRead(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 2046) + strings.Repeat("]", 2046) + `}`
	for _, line := range []string{`{"timestamp":1.0,"name":"x","context":` + deep + `}`, `{"name":"x","context":` + deep + `,"timestamp":1.0}`} {
		e := parse(t, line)
		require.Equal(t, deep, string(e.Context))
	}
}

func TestAnUnusualLineIsReadToo(t *testing.T) {
	for _, line := range []string{
		`{"timestamp":1.5,"name":"x","context":{"a": 1}}`,
		` { "timestamp" : 1.5 , "name" : "x" , "context" : {"a": 1} } `,
		"{\t\"timestamp\":1.5,\r\"name\":\"x\",\"context\":\t{\"a\": 1}}",
		`{"context":{"a": 1},"name":"x","timestamp":1.5}`,
		`{"\u0074imestamp":15e-1,"n\u0061me":"\u0078","context":{"a": 1}}`,
		`{"timestamp":1.5,"name":"x","other":[1,{"name":2}],"context":{"a": 1},"":null}`,
	} {
		e := parse(t, line)
		require.Equal(t, eventlog.Timestamp(1.5), e.Timestamp)
		require.Equal(t, "x", e.Name)
		require.Equal(t, `{"a": 1}`, string(e.Context))
	}
}

func TestATornLogGivesItsCompleteEntriesFirst(t *testing.T) {
	for _, torn := range []string{"{", `{"timestamp":1.0,"name":"x"}`, " ", "x", "\r", "\x00", strings.Repeat("x", 1<<20)} {
		entries, err := collect([]byte(good + good + torn))
		require.Len(t, entries, 2)
		require.EqualError(t, err, fmt.Sprintf("eventlog: line 3: offset %d: torn last line", 2*len(good)))
		requireSyntaxError(t, err, 3, int64(2*len(good)), eventlog.ErrTorn)
	}
	_, err := collect([]byte(strings.Repeat("x", 1<<20+1)))
	requireSyntaxError(t, err, 1, 1<<20, eventlog.ErrLimit)
}

// The complete entries come out, and ErrTorn follows if and only if the prefix ends inside
// a line.
func TestEveryPrefixOfALogGivesItsCompleteEntries(t *testing.T) {
	for _, log := range testdataLogs(t) {
		whole, err := collect(log)
		require.NoError(t, err)
		for n := range len(log) + 1 {
			complete := bytes.Count(log[:n], []byte("\n"))
			entries, err := collect(log[:n])
			require.Equal(t, whole[:complete], append([]eventlog.Entry{}, entries...))
			if begin := bytes.LastIndexByte(log[:n], '\n') + 1; begin < n {
				requireSyntaxError(t, err, complete+1, int64(begin), eventlog.ErrTorn)
			} else {
				require.NoError(t, err)
			}
		}
	}
}

func TestALoopCanBeLeftAndTakenUpAnew(t *testing.T) {
	seq := eventlog.Entries([]byte(good + good + good))
	for range 2 {
		n := 0
		for _, err := range seq {
			require.NoError(t, err)
			if n++; n == 1 {
				continue
			}
			break
		}
		require.Equal(t, 2, n)
	}
}

func TestAnEntryAliasesItsLogButForItsName(t *testing.T) {
	log := []byte(`{"timestamp":1.5,"name":"unknown","context":{"a":1}}` + "\n")
	entries, err := collect(log)
	require.NoError(t, err)
	_ = append(entries[0].Context, "xxx"...) // must not reach the log
	require.Equal(t, "}}\n", string(log[len(log)-3:]))
	kept := entries[0].Clone()
	copy(log, strings.Repeat("#", len(log)))
	require.Equal(t, "unknown", entries[0].Name)
	require.Equal(t, "#######", string(entries[0].Context))
	require.Equal(t, `{"a":1}`, string(kept.Context))
}
