package hostlist_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/rset/hostlist"
)

func TestTheZeroValueAndNilAreTheEmptyList(t *testing.T) {
	for name, l := range map[string]*hostlist.List{"zero": {}, "nil": nil, "parsed": parse(t, ""), "of nothing": hostlist.Of()} {
		t.Run(name, func(t *testing.T) {
			requireHosts(t, nil, l)
			requireFound(t, nil, l, "a1")
			requireFound(t, nil, l, "")
			for range l.Ranges() {
				t.Fatal("a range")
			}
			require.Equal(t, "", l.String())
			text, err := l.MarshalText()
			require.NoError(t, err)
			require.Equal(t, []byte{}, text)
			require.True(t, l.Clone().IsEmpty())
			full := hostlist.Of("a")
			full.AppendList(l)
			require.Equal(t, "a", full.String())
			require.False(t, full.Equal(l))
		})
	}
	l := new(hostlist.List)
	require.Zero(t, l.Uniq())
	require.NoError(t, l.Append("a"))
	require.Equal(t, "a", l.String())
}

func TestTheCanonicalText(t *testing.T) {
	for text, want := range map[string]string{
		"a1[8-11]":              "a[18-19,110-111]",
		"a[98-101]":             "a[98-101]",
		"0[8-11]":               "[08-09,010-011]",
		"n[1-3]-ib":             "n1-ib,n2-ib,n3-ib",
		"n[1]-eth0,n1-eth[1-2]": "n1-eth[0-2]",
		"n[1,1]-eth0":           "n1-eth[0,0]",
		"a[1-1]":                "a1",
		// Of more than 18 digits the last 18 are the id.
		"a0999999999999999999":                             "a0999999999999999999",
		"a999999999999999999,a1000000000000000000":         "a999999999999999999,a1000000000000000000",
		"a[0000000000000000001-0000000000000000003]":       "a0[000000000000000001-000000000000000003]",
		"a[0000000000000000001-3]":                         "a0[000000000000000001-000000000000000003]",
		"a1000000000000000001,a1000000000000000002":        "a1[000000000000000001-000000000000000002]",
		"a[1000000000000000001-1000000000000000002]":       "a1[000000000000000001-000000000000000002]",
		"a99[999999999999999998-999999999999999999]":       "a99[999999999999999998-999999999999999999]",
		"a1[99999999999999999-100000000000000001]":         "a[199999999999999999],a1[100000000000000000-100000000000000001]",
		"a00000000000000[9998-10001],a000000000000000[01]": "a[000000000000009998-000000000000009999],a0[000000000000010000-000000000000010001],a00000000000000001",
	} {
		want = hosts(t, parse(t, want)) // where it says so, a[1] for a1
		l := parse(t, text)
		require.Equal(t, want, hosts(t, l), text)
		requireHosts(t, strings.Split(want, ","), l)
	}
	require.Equal(t, "a[18-19,110-111]", parse(t, "a1[8-11]").String())
	require.Equal(t, "a[1-4],b,n1-ib", parse(t, "a1,a[2-3],a4,b,n[1]-ib").String())
	require.Equal(t, "a1[000000000000000001-000000000000000002]", parse(t, "a1000000000000000001,a1000000000000000002").String())
}

func TestALoopYieldsWhatWasThereWhenItBegan(t *testing.T) {
	for name, change := range map[string]func(*hostlist.List){
		"longer last range": func(l *hostlist.List) { require.NoError(t, l.Append("a4", "a5")) },
		"more ranges":       func(l *hostlist.List) { require.NoError(t, l.Append("b", "c")) },
		"sorted":            func(l *hostlist.List) { l.Uniq() },
		"other":             func(l *hostlist.List) { require.NoError(t, l.UnmarshalText([]byte("z"))) },
	} {
		l := parse(t, "b,a[1-3]")
		var seen []string
		for host := range l.All() {
			if len(seen) == 0 {
				change(l)
			}
			seen = append(seen, host)
		}
		require.Equal(t, []string{"b", "a1", "a2", "a3"}, seen, name)
	}
	l := parse(t, "a[1-9],b")
	n := 0
	for range l.All() {
		if n++; n == 3 {
			break
		}
	}
	for range l.Ranges() {
		break
	}
	require.Equal(t, 3, n)
}

func TestEveryFormatterSaysTheSame(t *testing.T) {
	for _, text := range []string{"", "a", "a[1-3,5],b", "n1-ib,n2-ib", "[00-02]"} {
		l := parse(t, text)
		require.Equal(t, text, l.String())
		marshalled, err := l.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, string(marshalled))
		room := []byte("before|------------------------")
		appended, err := l.AppendText(room[:7])
		require.NoError(t, err)
		require.Equal(t, "before|"+text, string(appended))
		require.Equal(t, text, fmt.Sprint(l))
		encoded, err := json.Marshal(map[string]*hostlist.List{"nodelist": l})
		require.NoError(t, err)
		require.Equal(t, `{"nodelist":"`+text+`"}`, string(encoded))
		var back map[string]*hostlist.List
		require.NoError(t, json.Unmarshal(encoded, &back))
		require.True(t, back["nodelist"].Equal(l))
	}
}

func TestAfterAnErrorTheListIsAsBefore(t *testing.T) {
	l := parse(t, "a[1-3],b")
	before := l.Snapshot()
	for _, text := range []string{"a[", "a b", "n[0-16777216]", strings.Repeat(",", hostlist.MaxText+1)} {
		require.Error(t, l.UnmarshalText([]byte(text)))
		require.Equal(t, before, l.Snapshot())
	}
}

func TestAListKeepsNothingOfItsInput(t *testing.T) {
	short := "abc[1-3],def"
	require.False(t, parse(t, short).Keeps(short))
	name := "abc1"
	require.False(t, hostlist.Of(name).Keeps(name))
	text := []byte("abc[1-3],def,ghi[1-2]-ib")
	l := new(hostlist.List)
	require.NoError(t, l.UnmarshalText(text))
	clear(text)
	require.Equal(t, "abc[1-3],def,ghi1-ib,ghi2-ib", l.String())
}

func TestOfPanicsOnWhatAppendRefuses(t *testing.T) {
	require.PanicsWithValue(t, `hostlist: Of: hostlist: syntax error: offset 1: unexpected byte in "a[1]"`, func() { hostlist.Of("b", "a[1]") })
	require.Panics(t, func() { hostlist.Of("") })
}

// HL-1.
func TestLimitsAreExact(t *testing.T) {
	name := strings.Repeat("x", hostlist.MaxName-2)
	for _, c := range []struct {
		text string
		p    hostlist.Parser
		want string // the error; "": none
	}{
		{"n[0-16777215]", hostlist.Parser{}, ""},
		{"n[0-16777216]", hostlist.Parser{}, "offset 2: 16777217 hosts, at most 16777216 are allowed"},
		{"a,n[0-16777215]", hostlist.Parser{}, "offset 4: 16777217 hosts, at most 16777216 are allowed"},
		{"n[0-16777215],a", hostlist.Parser{}, "offset 14: 16777217 hosts, at most 16777216 are allowed"},
		{"n[0-16777216]", hostlist.Parser{MaxHosts: 1 << 25}, ""},
		{"n[0-131071]-ib", hostlist.Parser{}, ""},
		{"n[0-131072]-ib", hostlist.Parser{}, "offset 2: 131073 spelled hosts, at most 131072 are allowed"},
		{"n[0-5]-ib,m[0-4,5]x", hostlist.Parser{MaxSpelled: 12}, ""},
		{"n[0-5]-ib,m[0-4,5]x", hostlist.Parser{MaxSpelled: 11}, "offset 16: 12 spelled hosts, at most 11 are allowed"},
		{"a,b", hostlist.Parser{MaxHosts: 2, MaxText: 3}, ""},
		{"a,b", hostlist.Parser{MaxHosts: 1}, "offset 2: 2 hosts, at most 1 are allowed"},
		{"a,b", hostlist.Parser{MaxText: 2}, "offset 0: 3 bytes, at most 2 are allowed"},
		{"a[0-1]x", hostlist.Parser{MaxHosts: 1}, "offset 2: 2 hosts, at most 1 are allowed"},
		{name + "yz", hostlist.Parser{}, ""},
		{"a," + name + "xyz", hostlist.Parser{}, "offset 2: 256 bytes of a name, at most 255 are allowed"},
		{name + "[98-99]", hostlist.Parser{}, ""},
		{name + "[98-99,098]", hostlist.Parser{}, "offset 260: 256 bytes of a name, at most 255 are allowed"},
		{name + "[98-100]", hostlist.Parser{}, "offset 254: 256 bytes of a name, at most 255 are allowed"},
		{name + "[9]z", hostlist.Parser{}, ""},
		{name + "[9]yz", hostlist.Parser{}, "offset 254: 256 bytes of a name, at most 255 are allowed"},
		{"a[999999999999999990-999999999999999999]", hostlist.Parser{}, ""},
		{"a[999999999999999990-1000000000000000000]", hostlist.Parser{}, "offset 2: 19 digits of an id, at most 18 are allowed"},
		{"a[1999999999999999990-2000000000000000000]", hostlist.Parser{}, "offset 2: 19 digits of an id, at most 18 are allowed"},
		{"a[0-18446744073709551616]", hostlist.Parser{}, "offset 2: 20 digits of an id, at most 18 are allowed"},
		{"a[18446744073709551616]", hostlist.Parser{}, ""},
	} {
		l, err := c.p.Parse(c.text)
		if c.want == "" {
			require.NoError(t, err, c.text)
			require.NoError(t, l.Check())
			continue
		}
		require.EqualError(t, err, "hostlist: limit exceeded: "+c.want)
		require.ErrorIs(t, err, hostlist.ErrLimit)
		require.Nil(t, l)
	}
	require.NoError(t, new(hostlist.List).Append(name+"yz"))
	require.EqualError(t, new(hostlist.List).Append(name+"xyz"), "hostlist: limit exceeded: offset 0: 256 bytes of a name, at most 255 are allowed")
	_, err := hostlist.Parser{MaxHosts: -1, MaxSpelled: -1, MaxText: -1}.Parse("a[0-1]b")
	require.NoError(t, err)
	_, err = hostlist.Parser{MaxHosts: math.MaxInt, MaxSpelled: math.MaxInt, MaxText: math.MaxInt}.Parse("a[0-1]b")
	require.NoError(t, err)
}

func TestErrorsTellThePlaceAndTheCause(t *testing.T) {
	for text, want := range map[string]string{
		"a[1":                       `offset 3: bracket is not closed in "a[1"`,
		"b,a[":                      `offset 4: bracket is not closed in "a["`,
		"a[1-":                      `offset 4: bracket is not closed in "a[1-"`,
		"a[1,":                      `offset 4: bracket is not closed in "a[1,"`,
		"a]":                        `offset 1: bracket is not opened in "a]"`,
		"b,a[1]]":                   `offset 6: bracket is not opened in "a[1]]"`,
		"a[1][2]":                   `offset 4: second bracket in "a[1][2]"`,
		"a[]":                       `offset 2: empty element in "a[]"`,
		"a[1,,2]":                   `offset 4: empty element in "a[1,,2]"`,
		"a[1-]":                     `offset 4: empty element in "a[1-]"`,
		"a[-1]":                     `offset 2: empty element in "a[-1]"`,
		"a[1,x]":                    `offset 4: unexpected byte in "a[1,x]"`,
		"a[1x]":                     `offset 3: unexpected byte in "a[1x]"`,
		"a[1-2-3]":                  `offset 5: unexpected byte in "a[1-2-3]"`,
		"c,a b":                     `offset 3: unexpected byte in "a b"`,
		"a[1] b":                    `offset 4: unexpected byte in "a[1] b"`,
		"a[1,9-8]":                  `offset 4: range does not ascend in "a[1,9-8]"`,
		"a[9-08]":                   `offset 2: range does not ascend in "a[9-08]"`,
		"a[09-8]":                   `offset 2: range does not ascend in "a[09-8]"`,
		"a[99999999999999999999-1]": `offset 2: range does not ascend in "a[99999999999999999999-1]"`,
		"a[18446744073709551616-18446744073709551615]": `offset 2: range does not ascend in "a[18446744073709551616-18446744073709551615]"`,
		"\x00\xffé":    `offset 0: unexpected byte in "\x00\xffé"`,
		"a\n\"`":       "offset 1: unexpected byte in \"a\\n\\\"`\"",
		"x[1],y[1]z[,": `offset 10: second bracket in "y[1]z[,"`,
	} {
		_, err := hostlist.Parse(text)
		require.EqualError(t, err, "hostlist: syntax error: "+want)
		require.ErrorContains(t, err, syntaxError)
		require.NotErrorIs(t, err, hostlist.ErrLimit)
	}
	_, err := hostlist.Parse(strings.Repeat("x", 100) + " ")
	require.EqualError(t, err, `hostlist: syntax error: offset 100: unexpected byte in "`+strings.Repeat("x", 64)+`"`)
}

// A part of a list is as good as the hosts one by one.
func TestAppendPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := hostlist.Parse(rapid.StringMatching(`([ab](0?[0-9]|\[0?[0-9]-1[0-9]{2}\])?,){1,6}`).Draw(t, "list"))
		require.NoError(t, err)
		from := rapid.IntRange(0, m.Len()).Draw(t, "from")
		to := rapid.IntRange(from, m.Len()).Draw(t, "to")
		got, want := hostlist.Of("a0"), hostlist.Of("a0")
		got.AppendPart(m, from, to)
		require.NoError(t, want.Append(slices.Collect(m.All())[from:to]...))
		require.True(t, got.Equal(want), "%v and %v", got, want)
		require.NoError(t, got.Check())
	})
}
