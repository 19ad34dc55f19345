package flux

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// What Parse accepts is written to the same bytes, and no prefix of it is a message.
func FuzzParse(f *testing.F) {
	for _, b := range frames(f) {
		f.Add(b[4:])
	}
	for _, c := range sample {
		f.Add(unhex(f, c.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			require.True(t, errors.Is(err, ErrMessage) || errors.Is(err, ErrLimit), err)
			require.Less(t, len(err.Error()), 400)
			require.Equal(t, Message{}, m)
			return
		}
		again, err := m.AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, b, again)
		if m.Type == TypeRequest {
			r := m.Respond(m.Payload)
			require.Equal(t, m.Matchtag, r.Matchtag)
			again, err := r.AppendBinary(nil)
			require.NoError(t, err)
			_, err = Parse(again)
			require.NoError(t, err)
		}
		for n := max(0, len(b)-1000); n < len(b); n++ {
			_, err := Parse(b[:n])
			require.ErrorIs(t, err, ErrMessage) // its last part breaks off, whatever is in it
		}
		_, _ = m.JSON()
	})
}

// A Reader returns the same however the bytes come, and reads on after what it skips.
func FuzzReader(f *testing.F) {
	var all []byte
	for _, b := range frames(f) {
		b = append(binary.NativeEndian.AppendUint32(nil, frameMagic), b...)
		f.Add(b)
		all = append(all, b...)
	}
	f.Add(all)
	head := binary.NativeEndian.AppendUint32(nil, frameMagic)
	f.Add(append(head, 0xff, 0xff, 0xff, 0xff))
	f.Add(append(append(head, 0, 0, 0, 0), all...))
	f.Fuzz(func(t *testing.T, b []byte) {
		const most = 300
		read := func(in io.Reader) (got []string, written []byte) {
			for r := NewReader(in, most); ; {
				m, err := r.Read()
				switch {
				case errors.As(err, new(*SkipError)):
					got, written = append(got, err.Error()), nil
				case err != nil:
					return append(got, err.Error()), written
				default:
					got = append(got, describe(&m))
					written, err = AppendFrame(written, &m)
					require.NoError(t, err)
				}
			}
		}
		got, written := read(bytes.NewReader(b))
		require.LessOrEqual(t, len(got), 1+len(b)/frameHead)
		require.True(t, bytes.Contains(b, written))
		one, _ := read(iotest.OneByteReader(bytes.NewReader(b)))
		require.Equal(t, got, one)
	})
}

// A frame that claims 4 GiB has no more room than what comes.
func TestAFrameThatClaimsMuch(t *testing.T) {
	head := append(binary.NativeEndian.AppendUint32(nil, frameMagic), 0, 0xff, 0xff, 0xff)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := NewReader(bytes.NewReader(head), 0).Read()
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(300_000))
	head[4] = 0xff
	_, err = NewReader(io.MultiReader(bytes.NewReader(head), bytes.NewReader(make([]byte, 1<<20))), 0).Read()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
