package eventlog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
)

// One test for each clause of RFC 18, section "Event Log Format".

// rfcExample is the example of RFC 18. Its third line is not JSON, and its
// times are not in order.
const rfcExample = `{"timestamp":1552593348.073045,"name":"submit","context":{"urgency":16,"userid":5588,"flags":0}}
{"timestamp":1552593547.411336,"name":"urgency","context":{"urgency":0,"userid":5588}}
{"timestamp":1552593348.088391,"name":"alloc",context:{"note":"rank0/core[0-1]"}}
{"timestamp":1552593348.093541,"name":"free"}
{"timestamp":1552593348.089787,"name":"start"}
{"timestamp":1552593348.092830,"name":"release","context":{"ranks":"all","final":true}}
{"timestamp":1552593348.090927,"name":"finish","context":{"status":0}}
{"timestamp":1552593348.104432,"name":"clean"}
`

func TestRFC18TheExampleIsReadUpToItsInvalidLine(t *testing.T) {
	entries, err := collect([]byte(rfcExample))
	require.Len(t, entries, 2)
	require.EqualError(t, err, `eventlog: line 3: offset 230: unexpected byte "c"`)
	require.Equal(t, byte('c'), rfcExample[230])
	require.ErrorIs(t, err, eventlog.ErrSyntax)
}

// EL-3: its times are in no order.
func TestRFC18TheExampleIsALogOnceThatLineIsJSON(t *testing.T) {
	log := strings.Replace(rfcExample, `,context:`, `,"context":`, 1)
	entries, err := collect([]byte(log))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"submit", "urgency", "alloc", "free", "start", "release", "finish", "clean"}, names)
	require.Equal(t, `{"ranks":"all","final":true}`, string(entries[5].Context))
	require.Nil(t, entries[3].Context)

	// It was not printed as Flux prints: not the same bytes, but the same times.
	out, _, err := reencode(t, []byte(log))
	require.NoError(t, err)
	require.Equal(t, values(t, []byte(log)), values(t, out))
}

func TestRFC18EventsAreSeparatedByNewlines(t *testing.T) {
	const event = `{"timestamp":1.0,"name":"x"}`
	for log, n := range map[string]int{"": 0, event + "\n": 1, event + "\n" + event + "\n": 2} {
		entries, err := collect([]byte(log))
		require.NoError(t, err)
		require.Len(t, entries, n)
	}
	for _, log := range []string{"\n", event + "\n\n", "\n" + event + "\n", event + event + "\n", event + "," + event + "\n", event + "\r\n", event + "\n \n"} {
		_, err := collect([]byte(log))
		require.ErrorIs(t, err, eventlog.ErrSyntax, "%q", log)
	}
}

func TestRFC18EachEventIsAnObject(t *testing.T) {
	for _, line := range []string{`[]`, `"x"`, `1`, `null`, `true`} {
		_, err := eventlog.Parse([]byte(line))
		require.ErrorIs(t, err, eventlog.ErrEntry, line)
	}
}

func TestRFC18AnEventHasNoEmbeddedNewlines(t *testing.T) {
	_, err := eventlog.Parse([]byte("{\"timestamp\":1.0,\n\"name\":\"x\"}\n"))
	require.EqualError(t, err, "eventlog: line 1: offset 17: newline inside an entry")
	require.ErrorIs(t, err, eventlog.ErrSyntax)

	line, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: 1, Name: "a\nb", Context: []byte("{\n \"a b\" : [ 1,\n2 ]\n}\n")})
	require.NoError(t, err)
	require.Equal(t, `{"timestamp":1.0,"name":"a\nb","context":{"a b":[1,2]}}`+"\n", string(line))
}

func TestRFC18ALogIsWrittenByWholeEvents(t *testing.T) {
	line, err := eventlog.AppendEntry([]byte("before\n"), eventlog.Entry{Timestamp: 1, Name: "x"})
	require.NoError(t, err)
	require.Equal(t, "before\n"+`{"timestamp":1.0,"name":"x"}`+"\n", string(line))
}

// Of the keys, timestamp and name are required and context is not; each has its type.
func TestRFC18KeysAreThereAndOfTheirTypes(t *testing.T) {
	var cases = map[string]string{
		`{"name":"x"}`:                 "offset 0: timestamp: key is missing",
		`{"timestamp":1.0}`:            "offset 0: name: key is missing",
		`{"timestamp":1.0,"Name":"x"}`: "offset 0: name: key is missing",
	}
	for _, value := range []string{`null`, `true`, `["x"]`} {
		cases[`{"timestamp":`+value+`,"name":"x"}`] = "offset 13: timestamp: must be a number"
		cases[`{"timestamp":1.0,"name":`+value+`}`] = "offset 24: name: must be a string"
		cases[`{"timestamp":1.0,"name":"x","context":`+value+`}`] = "offset 38: context: must be an object"
	}
	cases[`{"timestamp":"1.0","name":"x"}`] = "offset 13: timestamp: must be a number"
	cases[`{"timestamp":{},"name":"x"}`] = "offset 13: timestamp: must be a number"
	cases[`{"timestamp":1.0,"name":1}`] = "offset 24: name: must be a string"
	cases[`{"timestamp":1.0,"name":{}}`] = "offset 24: name: must be a string"
	cases[`{"timestamp":1.0,"name":"x","context":1}`] = "offset 38: context: must be an object"
	cases[`{"timestamp":1.0,"name":"x","context":"x"}`] = "offset 38: context: must be an object"
	for line, want := range cases {
		_, err := eventlog.Parse([]byte(line))
		require.EqualError(t, err, "eventlog: line 1: "+want)
		require.ErrorIs(t, err, eventlog.ErrEntry)
	}
	for line, want := range map[string]eventlog.Entry{
		`{"timestamp":1.0,"name":"x"}`:              {Timestamp: 1, Name: "x"},
		`{"timestamp":1.0,"name":"x","context":{}}`: {Timestamp: 1, Name: "x", Context: []byte("{}")},
		`{"timestamp":1.0,"name":"a\u00e9\"\n"}`:    {Timestamp: 1, Name: "aé\"\n"},
	} {
		e := parse(t, line)
		require.Equal(t, want, e)
	}
}

// EL-3.
func TestRFC18TimestampIsGreaterThanZero(t *testing.T) {
	for _, value := range []string{`0`, `-0`, `0.0`, `-0.0`, `-1`, `-0.5`, `0e5`, `1e-400`, `-9223372036854775808`} {
		_, err := eventlog.Parse([]byte(`{"timestamp":` + value + `,"name":"x"}`))
		require.EqualError(t, err, "eventlog: line 1: offset 13: timestamp: must be greater than zero", value)
		require.ErrorIs(t, err, eventlog.ErrEntry)
		_, err = eventlog.Parse([]byte(`{"name":"x", "timestamp": ` + value + `}`))
		require.EqualError(t, err, "eventlog: line 1: offset 26: timestamp: must be greater than zero", value)
	}
	e := parse(t, `{"timestamp":5e-324,"name":"x"}`)
	require.Equal(t, eventlog.Timestamp(5e-324), e.Timestamp)
}

func TestRFC18TimestampMayHaveSubSecondPrecision(t *testing.T) {
	for text, want := range map[string]eventlog.Timestamp{
		"1": 1, "42.5": 42.5, "1552593348.073045": 1552593348.073045, "1552593348.0881419": 1552593348.0881419, "1e3": 1000,
		"9007199254740993": 9007199254740992, "9223372036854775807": 1 << 63, "1.7976931348623157e308": 1.7976931348623157e308,
	} {
		e := parse(t, `{"timestamp":`+text+`,"name":"x"}`)
		require.Equal(t, want, e.Timestamp, text)
	}
	for _, text := range []string{"1e309", "9223372036854775808", "1.7976931348623159e308"} {
		_, err := eventlog.Parse([]byte(`{"timestamp":` + text + `,"name":"x"}`))
		require.EqualError(t, err, `eventlog: line 1: offset 13: number out of range: "`+text+`"`)
		require.ErrorIs(t, err, eventlog.ErrSyntax)
	}
}

func TestRFC18ANameMayBeOfAnyApplication(t *testing.T) {
	for _, name := range []string{"debug.foo", "x", "é漢😀", strings.Repeat("long", 1000)} {
		line, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: 1, Name: name})
		require.NoError(t, err)
		e, err := eventlog.Parse(line)
		require.NoError(t, err)
		require.Equal(t, name, e.Name)
	}
}
