package jsonobj

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/bomb"
	"github.com/joblife/joblife/internal/race"
)

func TestTheCommonPathAllocatesNothing(t *testing.T) {
	race.Skip(t)
	context := []byte(`{"userid":1000,"urgency":16,"flags":0,"version":1,"annotations":{"sched":{"resource_summary":"rank[0-3]/core[0-7]"}},"x":[1.5,true,null,"é"]}`)
	keys16, _ := objectOf(16, -1, keyNames["long"])
	nested := []byte(strings.Repeat("[", 8) + strings.Repeat("]", 8))
	escaped := []byte(`{"\u0061":1,"b":2,"c":"\n"}`)
	dst := make([]byte, 0, 1<<10)
	for name, f := range map[string]func(){
		"check":          func() { _ = Check(context, 0) },
		"check 16 keys":  func() { _ = Check(keys16, 0) },
		"check 8 levels": func() { _ = Check(nested, 0) },
		"check escaped":  func() { _ = Check(escaped, 0) },
		"value end":      func() { _, _ = ValueEnd(context, 0, 0) },
		"walk":           func() { walkAll(context) },
		"int":            func() { _, _ = Int64([]byte("1234567890123456789")) },
		"float":          func() { _, _ = Float64([]byte("1795226020.2783487")) },
		"small float":    func() { _, _ = Float64([]byte("1.2345678901234567e-300")) },
		"unescape":       func() { _ = unescaped(dst, []byte(`"a\u00e9\n"`), 0) },
		"append string":  func() { AppendString(dst, "a\n\"é") },
		"append float":   func() { AppendFloat(dst, 1795226020.2783487) },
		"append a big":   func() { AppendFloat(dst, -1.5e300) },
		"append compact": func() { AppendCompact(dst, context) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, f), name)
	}
}

func walkAll(b []byte) {
	d := NewDoc(b)
	for o := d.Object(); o.Next(); {
		_, _ = o.Key(), o.Value()
	}
	if d.Failed() {
		panic(d.Err())
	}
}

func TestManyKeysCostAFewAllocationsNotOneEach(t *testing.T) {
	race.Skip(t)
	in, _ := objectOf(10_000, -1, keyNames["long"])
	require.LessOrEqual(t, testing.AllocsPerRun(5, func() { _ = Check(in, 0) }), 30.0)
	require.LessOrEqual(t, testing.AllocsPerRun(5, func() { walkAll(in) }), 30.0)
}

// Keys were once unescaped for each comparison: 30 times as much.
func TestKeysWithEscapesCostLittleMoreThanOthers(t *testing.T) {
	if race.Enabled {
		t.Skip("times are not judged")
	}
	cost := func(perObject int, format string) time.Duration {
		in := []byte("[")
		for i := 0; len(in) < 1<<19; i++ {
			open := `,"`
			switch {
			case i == 0:
				open = `{"`
			case i%perObject == 0:
				open = `},{"`
			}
			in = fmt.Appendf(in, open+format+`":0`, i)
		}
		in = append(in, "}]"...)
		least := time.Minute
		for range 5 {
			_, took := bomb.Cost(func() { require.NoError(t, Check(in, 0)) })
			least = min(least, took)
		}
		return least
	}
	for _, perObject := range []int{16, 1 << 20} {
		for plain, escaped := range map[string]string{"aaaaaaa%d": `\u0061%d`, "aaaaaaaaaaaaaa%daaaaaaaa": `aaaaaaaa\u0061%daaaaaaaa`} {
			require.Less(t, cost(perObject, escaped), 8*cost(perObject, plain), "%d keys in an object: %s", perObject, escaped)
		}
	}
}
