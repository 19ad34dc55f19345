package flux

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
)

// sample has a message of each kind, and its bytes.
var sample = []struct {
	name, hex string
	m         Message
}{
	{"a request", "0d" + hex.EncodeToString([]byte("job-manager.x")) + "03" + "7b7d00" +
		"14 8e01 01 03 000003e8 00000002 00000007 00000009",
		Message{Type: TypeRequest, Flags: FlagTopic | FlagPayload, UserID: 1000, Rolemask: RoleUser, Nodeid: 7, Matchtag: 9,
			Topic: "job-manager.x", Payload: []byte("{}\x00")}},
	{"a route, whose last hop comes first", "0162 0161 00" + "0174" + "14 8e01 02 09 ffffffff 00000000 00000026 00000001",
		Message{Type: TypeResponse, Flags: FlagTopic | FlagRoute, UserID: UserUnknown, Errnum: errno.NoSys, Matchtag: 1,
			Route: []string{"a", "b"}, Topic: "t"}},
	{"an empty route", "00" + "0174" + "14 8e01 01 0d ffffffff 00000000 ffffffff 00000000",
		Message{Type: TypeRequest, Flags: FlagTopic | FlagRoute | FlagNoResponse, UserID: UserUnknown, Nodeid: NodeidAny, Topic: "t"}},
	{"an empty payload", "0174" + "00" + "14 8e01 04 23 00000000 00000001 00000102 00000000",
		Message{Type: TypeEvent, Flags: FlagTopic | FlagPayload | FlagPrivate, Rolemask: RoleOwner, Seq: 0x102, Topic: "t", Payload: []byte{}}},
	{"a part of 254 bytes", "fe" + strings.Repeat("74", 254) + "14 8e01 01 01 00000000 00000001 00000000 00000000",
		Message{Type: TypeRequest, Flags: FlagTopic, Rolemask: RoleOwner, Topic: strings.Repeat("t", 254)}},
	{"a part of 255 bytes", "ff000000ff" + strings.Repeat("74", 255) + "14 8e01 01 01 00000000 00000001 00000000 00000000",
		Message{Type: TypeRequest, Flags: FlagTopic, Rolemask: RoleOwner, Topic: strings.Repeat("t", 255)}},
}

func unhex(t testing.TB, text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

func TestMessagesAsBytes(t *testing.T) {
	for _, c := range sample {
		t.Run(c.name, func(t *testing.T) {
			b := unhex(t, c.hex)
			m, err := Parse(b)
			require.NoError(t, err)
			require.Equal(t, c.m, m)
			out, err := m.AppendBinary([]byte("dst"))
			require.NoError(t, err)
			require.Equal(t, "dst"+string(b), string(out))
			for n := range b {
				_, err := Parse(b[:n])
				require.ErrorIs(t, err, ErrMessage, n)
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	end := func(kind, flags, one, two string) string {
		return "14 8e01" + kind + flags + "00000000 00000001" + one + two
	}
	const none = "00000000"
	request := end("01", "01", none, none)
	for text, want := range map[string]string{
		"":                      "offset 0: malformed message: no block of 20 bytes at the end",
		"0174 13" + request[3:]: "offset 2: malformed message: no block of 20 bytes at the end",
		"0174" + strings.Replace(request, "8e01", "8d01", 1):      "offset 3: malformed message: it begins with 0x8d 0x1 instead of 0x8e 0x1",
		"0174" + strings.Replace(request, "8e01", "8e02", 1):      "offset 3: malformed message: it begins with 0x8e 0x2",
		"0174" + end("03", "01", none, none):                      "offset 5: malformed message: no message is of type 3",
		"0174" + end("01", "01", "fffffffe", none):                "offset 6: malformed message: no rank is 4294967294",
		"0174" + end("04", "01", none, "00000001"):                "offset 19: malformed message: an event has 0x1 where nothing belongs",
		end("01", "00", none, none):                               "request without a topic",
		request:                                                   "offset 0: malformed message: a part is missing",
		"00" + request:                                            "offset 0: malformed message: a topic is empty",
		"03740074" + request:                                      "offset 0: malformed message: a topic has a NUL",
		"0274" + request:                                          "offset 0: malformed message: a part of 2 bytes where 1 are left",
		"ffffffffff" + request:                                    "offset 0: malformed message: a part of 4294967295 bytes where 0 are left",
		"ff0000" + request:                                        "offset 0: malformed message: a length breaks off",
		"ff00000001 74" + request:                                 "offset 0: malformed message: four bytes for the length 1",
		"0174 0174" + request:                                     "offset 2: malformed message: 2 bytes that no flag speaks of",
		"0174" + end("01", "03", none, none):                      "offset 2: malformed message: a part is missing",
		"0161 0174" + end("01", "09", none, none):                 "offset 4: malformed message: a part is missing",
		"0100 00 0174" + end("01", "09", none, none):              "offset 0: malformed message: a hop has a NUL",
		"ff00000401" + strings.Repeat("74", MaxTopic+1) + request: "offset 0: beyond a limit: a topic has 1025 bytes of at most 1024",
		"ff00000100" + strings.Repeat("61", MaxHop+1) + "00" + end("01", "09", none, none): "beyond a limit: a hop has 256 bytes of at most 255",
		strings.Repeat("0161", MaxHops+1) + "00 0174" + end("01", "09", none, none):        "offset 512: beyond a limit: more than 256 hops",
	} {
		_, err := Parse(unhex(t, text))
		require.ErrorContains(t, err, want)
	}
}

// A message that Parse would refuse is not written, and dst is as it was.
func TestWhatIsNotWritten(t *testing.T) {
	for want, change := range map[string]func(*Message){
		"no message is of type 0":           func(m *Message) { m.Type = 0 },
		"request without a topic":           func(m *Message) { m.Topic = "" },
		"a topic has a NUL":                 func(m *Message) { m.Topic = "a\x00" },
		"a topic has 1025 bytes":            func(m *Message) { m.Topic = strings.Repeat("t", MaxTopic+1) },
		"no rank is 4294967294":             func(m *Message) { m.Nodeid = NodeidMax + 1 },
		"request has a number of another":   func(m *Message) { m.Seq = 1 },
		"event has a number of another":     func(m *Message) { m.Type = TypeEvent },
		"a hop is empty":                    func(m *Message) { m.Route = []string{""} },
		"beyond a limit: more than 256 hop": func(m *Message) { m.Route = make([]string, MaxHops+1) },
	} {
		m := NewRequest("t", nil)
		change(&m)
		dst, err := AppendFrame([]byte("dst"), &m)
		require.ErrorContains(t, err, want)
		require.Equal(t, "dst", string(dst))
	}
}

func TestAnAnswerHasWhatItsRequestHad(t *testing.T) {
	q := Message{Type: TypeRequest, Flags: FlagTopic | FlagPayload | FlagRoute | FlagStreaming, UserID: 1000, Rolemask: RoleUser,
		Nodeid: 3, Matchtag: 9, Route: []string{"a", "b"}, Topic: "s.t.m", Payload: Text("{}")}
	r := q.Respond(nil)
	b, err := r.AppendBinary(nil)
	require.NoError(t, err)
	r, err = Parse(b)
	require.NoError(t, err)
	require.Equal(t, Message{Type: TypeResponse, Flags: FlagTopic | FlagRoute | FlagStreaming, UserID: UserUnknown,
		Matchtag: 9, Route: []string{"a", "b"}, Topic: "s.t.m"}, r)
	require.NoError(t, r.Err())

	r = q.RespondError(errno.NoEntry, "no such job")
	require.EqualError(t, r.Err(), "flux: s.t.m: no such job (errno 2)")
	require.EqualValues(t, errno.NoEntry, Errnum(r.Err()))
	r = q.RespondError(errno.NoData, "")
	require.EqualError(t, r.Err(), "flux: s.t.m: errno 61")
	require.Zero(t, Errnum(ErrClosed))

	require.Equal(t, "a", q.Sender())
	require.Empty(t, new(Message).Sender())
	service, method := q.Service()
	require.Equal(t, [2]string{"s", "t.m"}, [2]string{service, method})
}

func TestPayloadsOfJSON(t *testing.T) {
	for payload, want := range map[string]string{
		"{}\x00":             "",
		" {\"a\":[1]}\n\x00": "",
		"{}":                 "does not end in a NUL",
		"":                   "does not end in a NUL",
		"{}\x00\x00":         "not a JSON object",
		"[]\x00":             "not a JSON object",
		"{\x00":              "not a JSON object",
	} {
		m := NewRequest("t", []byte(payload))
		text, err := m.JSON()
		if want != "" {
			require.ErrorIs(t, err, ErrMessage)
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, payload, string(Text(text)))
	}
	_, err := new(Message).JSON()
	require.ErrorContains(t, err, "no payload")
}

func TestIDsAreWrittenAsFluxWritesThem(t *testing.T) {
	for env, want := range map[string]bool{
		"": true, "LANG=C": true, "LC_ALL=POSIX LANG=en_US.UTF-8": true, "LANG=de_DE": true, "LANG=en_US.UTF-8": false,
		"LC_CTYPE=C.utf8 LANG=C": false, "LANG=C.UTF-8 FLUX_F58_FORCE_ASCII=1": true, "LANG=C.UTF-8 FLUX_F58_FORCE_ASCII=": true,
	} {
		require.Equal(t, want, ASCII(func(name string) (string, bool) {
			_, rest, ok := strings.Cut(" "+env, " "+name+"=")
			value, _, _ := strings.Cut(rest, " ")
			return value, ok
		}), env)
	}
}

func TestNamesOfTypes(t *testing.T) {
	var b bytes.Buffer
	for _, v := range []Type{TypeRequest, TypeResponse, TypeEvent, 3} {
		b.WriteString(v.String() + " ")
	}
	require.Equal(t, "request response event Type(3) ", b.String())
}
