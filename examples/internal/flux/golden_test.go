package flux

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite what the messages in testdata/conversation.txt say")

const conversation = "testdata/conversation.txt"

// describe says what a message says, in one line.
func describe(m *Message) string {
	return fmt.Sprintf("%s flags %#02x user %d roles %d nodeid %d matchtag %d errnum %d seq %d route %q topic %q payload %q",
		m.Type, uint8(m.Flags), int32(m.UserID), m.Rolemask, int32(m.Nodeid), m.Matchtag, m.Errnum, m.Seq, m.Route, m.Topic, m.Payload)
}

// frames returns the frames of the conversation, without the magic number in front.
func frames(t testing.TB) (list [][]byte) {
	text, err := os.ReadFile(conversation)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if way, rest, _ := strings.Cut(strings.TrimSpace(line), " "); way == "<" || way == ">" {
			b, err := hex.DecodeString(strings.TrimPrefix(rest, "1200eeff"))
			require.NoError(t, err)
			list = append(list, b)
		}
	}
	return list
}

// What a client and a broker of flux-core 0.88 wrote is read, and written to the same bytes.
// Each line has what comes through the socket of a little-endian machine.
func TestARecordedConversation(t *testing.T) {
	text, err := os.ReadFile(conversation)
	require.NoError(t, err)
	var out strings.Builder
	list := frames(t)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line)
		if line[0] != '<' && line[0] != '>' {
			continue
		}
		b := list[0]
		list = list[1:]
		m, err := Parse(b[4:])
		require.NoError(t, err, line)
		again, err := AppendFrame(nil, &m)
		require.NoError(t, err)
		require.Equal(t, b, again[4:])
		out.WriteString("  " + describe(&m) + "\n")
	}
	if *update {
		require.NoError(t, os.WriteFile(conversation, []byte(out.String()), 0o644))
	}
	require.Equal(t, string(text), out.String())
}
