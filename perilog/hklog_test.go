package perilog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// hkLines is a log in which every event occurs that names ranks.
func hkLines(t require.TestingT) []string {
	f := hkNew(t, hkJob("0-5", hkAfter(0)), perilog.HousekeepingOptions{Decide: func(rank uint32, end perilog.End) perilog.Decision {
		if end.Cause.OK() {
			return perilog.DecisionRelease
		}
		return []perilog.Decision{perilog.DecisionHold, perilog.DecisionDrain}[rank%2]
	}})
	f.start(0, "0-4")
	f.exit(1, "0", 0)
	f.exit(2, "1-2", 1<<8)
	f.h.Drained(hkT0+3, hkRanks("1"))
	_, err := f.h.ForceFinish(hkT0+4, hkRanks("2"), "fluxadmin")
	require.NoError(t, err)
	f.h.Shrink(hkT0+5, hkRanks("5"))
	f.step()
	f.exit(6, "3-4", 0)
	require.True(t, f.h.Done())
	return strings.SplitAfter(strings.TrimSuffix(string(f.log), "\n"), "\n")
}

// The log as it is written: a change here is a change of the format.
func TestTheLogOfHousekeepingReadsAs(t *testing.T) {
	want := []string{
		`{"timestamp":1795226020.0,"name":"start","context":{"version":1,"id":"ƒVtB5VXd","userid":5588,"priority":16,` +
			`"t_submit":1795218820.0,"release-after":"0s","R":` + string(hkR("0-5").AppendJSON(nil)) + `}}`,
		`{"timestamp":1795226020.0,"name":"launch","context":{"ranks":"0-4"}}`,
		`{"timestamp":1795226021.0,"name":"end","context":{"ranks":"0","cause":"ok","status":0,"decision":"release"}}`,
		`{"timestamp":1795226021.0,"name":"release","context":{"ranks":"0","final":false}}`,
		`{"timestamp":1795226022.0,"name":"end","context":{"ranks":"1","cause":"failed","status":256,"decision":"drain"}}`,
		`{"timestamp":1795226022.0,"name":"end","context":{"ranks":"2","cause":"failed","status":256,"decision":"hold"}}`,
		`{"timestamp":1795226023.0,"name":"drained","context":{"ranks":"1"}}`,
		`{"timestamp":1795226023.0,"name":"release","context":{"ranks":"1","final":false}}`,
		`{"timestamp":1795226024.0,"name":"force","context":{"ranks":"2","user":"fluxadmin"}}`,
		`{"timestamp":1795226024.0,"name":"release","context":{"ranks":"2","final":false}}`,
		`{"timestamp":1795226025.0,"name":"shrink","context":{"ranks":"5"}}`,
		`{"timestamp":1795226025.0,"name":"release","context":{"ranks":"5","final":false}}`,
		`{"timestamp":1795226026.0,"name":"end","context":{"ranks":"3","cause":"ok","status":0,"decision":"release"}}`,
		`{"timestamp":1795226026.0,"name":"release","context":{"ranks":"3","final":false}}`,
		`{"timestamp":1795226026.0,"name":"end","context":{"ranks":"4","cause":"ok","status":0,"decision":"release"}}`,
		`{"timestamp":1795226026.0,"name":"release","context":{"ranks":"4","final":true}}`,
	}
	require.Equal(t, strings.Join(want, "\n"), strings.Join(hkLines(t), ""))
}

func TestEveryCauseAndDecisionComesBackFromTheLog(t *testing.T) {
	start := hkLines(t)[0]
	for cause, name := range hkCauses {
		for decision, state := range hkStates {
			log := start + `{"timestamp":1795226021.0,"name":"launch","context":{"ranks":"1"}}` + "\n" + fmt.Sprintf(
				`{"timestamp":1795226021.0,"name":"end","context":{"ranks":"1","cause":%q,"status":-7,"decision":%q}}`, name, decision) + "\n"
			h, err := perilog.ReplayHousekeeping([]byte(log), perilog.HousekeepingOptions{})
			require.NoError(t, err)
			require.Equal(t, "1", h.EndedBy(cause).String())
			require.Contains(t, h.String(), "; "+state+" 1;")
		}
	}
	h, err := perilog.ReplayHousekeeping([]byte(start), perilog.HousekeepingOptions{})
	require.NoError(t, err)
	require.True(t, h.EndedBy(0).IsEmpty())
	require.True(t, h.EndedBy(200).IsEmpty())
}

func TestEventsOfOtherNamesAreNotes(t *testing.T) {
	lines := hkLines(t)
	note := `{"timestamp":1795226020.0,"name":"site.note","context":{"ranks":7}}` + "\n"
	var noted strings.Builder
	for _, line := range lines {
		noted.WriteString(note + line)
	}
	plain, err := perilog.ReplayHousekeeping([]byte(strings.Join(lines, "")+"\n"), perilog.HousekeepingOptions{})
	require.NoError(t, err)
	h, err := perilog.ReplayHousekeeping([]byte(noted.String()+"\n"+note), perilog.HousekeepingOptions{})
	require.NoError(t, err)
	require.Equal(t, plain.String(), h.String())
	// Their times count as others do: what is logged next is not before.
	h, err = perilog.ReplayHousekeeping([]byte(lines[0]+strings.Replace(note, "020.0", "099.0", 1)+lines[1]), perilog.HousekeepingOptions{})
	require.NoError(t, err)
	_, err = h.ForceFinish(hkT0+50, hkRanks("0"), "root")
	require.NoError(t, err)
	require.Contains(t, string(h.Take().Log), `{"timestamp":1795226099.0,"name":"force"`)
	_, err = perilog.ReplayHousekeeping([]byte(note), perilog.HousekeepingOptions{})
	require.EqualError(t, err, "perilog: housekeeping: line 1: does not begin with all that a start says")
}

// After an error the replay stands where the log was still right.
func TestAMalformedEventEndsTheReplayWhereItStands(t *testing.T) {
	lines := hkLines(t)
	replace := func(old, with string) func(string) string {
		return func(line string) string {
			changed := strings.Replace(line, old, with, 1)
			require.NotEqual(t, line, changed)
			return changed
		}
	}
	r := string(hkR("0-5").AppendJSON(nil))
	for _, c := range []struct {
		line int // from 0
		edit func(string) string
		want string // the end of the error's text
	}{
		{0, replace(`"version":1,"id"`, `"version":2,"id"`), `"version": is not a version that this package reads`},
		{0, replace(`"version":1,"id"`, `"id"`), `"version": is missing`},
		{0, replace(`"version":1,"id"`, `"version":"1","id"`), `"version": has another JSON type`},
		{0, replace(`"ƒVtB5VXd"`, `"ƒVtB5VXl"`), `jobid: `},
		{0, replace(`"ƒVtB5VXd"`, `7`), `"id": has another JSON type`},
		{0, replace(`"id":"ƒVtB5VXd",`, ``), `"id": is missing`},
		{0, replace(`5588`, `-1`), `"userid": is out of range`},
		{0, replace(`5588`, `4294967296`), `"userid": is out of range`},
		{0, replace(`"userid":5588,`, ``), `"userid": is missing`},
		{0, replace(`16`, `4294967296`), `"priority": is out of range`},
		{0, replace(`"priority":16,`, ``), `"priority": is missing`},
		{0, replace(`1795218820.0`, `0`), `"t_submit": is out of range`},
		{0, replace(`1795218820.0`, `"x"`), `"t_submit": is out of range`},
		{0, replace(`"0s"`, `"-1s"`), `"release-after": `},
		{0, replace(`"0s"`, `0`), `"release-after": has another JSON type`},
		{0, replace(`"0s"`, `"0s","resources":{}`), `"resources": has another JSON type`},
		{0, replace(`"0s"`, `"0s","resources":["b","a"]`), `"resources": are not names, each once and not empty`},
		{0, replace(`"0s"`, `"0s","resources":["a","a"]`), `"resources": are not names, each once and not empty`},
		{0, replace(`"0s"`, `"0s","resources":[""]`), `"resources": are not names, each once and not empty`},
		{0, replace(`"0s"`, `"0s","resources":[1]`), `"resources": has another JSON type`},
		{0, replace(`"0s"`, `"0s","resources":[`+strings.Repeat(`"a",`, 1024)+`"a"]`), `"resources": is too long`},
		{0, replace(`"0s"`, `"0s","free":"6"`), `"R": rset: `},
		{0, replace(`"0s"`, `"0s","free":""`), `"free": names no rank`},
		{0, replace(`"0s"`, `"0s","extra":1`), `"extra": is not a key of this event`},
		{0, replace(`"0s"`, `"0s","parts":1`), `"parts": comes with R, or neither does`},
		{0, replace(`,"R":`+r, ``), `"parts": comes with R, or neither does`},
		{0, replace(r, `{}`), `"R": rset: `},
		{0, replace(r, string(hkEqual(t, perilog.MaxHousekeepingRanks+1).AppendJSON(nil))), `"R": is too long`},
		{0, replace(r, `null`), `"R": rset: `},
		{0, replace(`"start"`, `"launch"`), `"version": is not a key of this event`},
		{0, replace(`"start","context":`, `"start","x":`), `"version": is missing`},
		{1, replace(`"0-4"`, `"0-6"`), `names ranks of which this can not be`},
		{1, replace(`"0-4"`, `""`), `"ranks": names no rank`},
		{1, replace(`"0-4"`, `"4-0"`), `"ranks": idset: `},
		{1, replace(`"0-4"`, `4`), `"ranks": has another JSON type`},
		{1, replace(`"0-4"`, `"0-4","by":1`), `"by": is not a key of this event`},
		{1, replace(`"ranks":"0-4"`, ``), `"ranks": is missing`},
		{1, replace(`"launch"`, `"part"`), `"ranks": is not a key of this event`},
		{2, replace(`"0"`, `"5"`), `names ranks of which this can not be`},
		{2, replace(`"ok"`, `"fine"`), `"cause": is not one of the values it may have`},
		{2, replace(`"ok"`, `""`), `"cause": is not one of the values it may have`},
		{2, replace(`"cause":"ok",`, ``), `"cause": is missing`},
		{2, replace(`:0,`, `:2147483648,`), `"status": is out of range`},
		{2, replace(`:0,`, `:0.5,`), `"status": has another JSON type`},
		{2, replace(`"status":0,`, ``), `"status": is missing`},
		{2, replace(`"release"`, `"forget"`), `"decision": is not one of the values it may have`},
		{2, replace(`,"decision":"release"`, ``), `"decision": is missing`},
		{3, replace(`false`, `true`), `"final": is not what the ranks left tell`},
		{3, replace(`false`, `0`), `"final": has another JSON type`},
		{3, replace(`,"final":false`, ``), `"final": is missing`},
		{3, replace(`"0"`, `""`), `names no rank`},
		{3, replace(`"0"`, `"0-1"`), `names ranks of which this can not be`},
		{6, replace(`"1"`, `"2"`), `names ranks of which this can not be`},
		{8, replace(`"2"`, `"1"`), `names ranks of which this can not be`},
		{8, replace(`"fluxadmin"`, `"`+strings.Repeat("x", 257)+`"`), `"user": is too long`},
		{8, replace(`,"user":"fluxadmin"`, ``), `"user": is missing`},
		{10, replace(`"5"`, `"1,5"`), `names ranks of which this can not be`},
		{15, replace(`true`, `false`), `"final": is not what the ranks left tell`},
	} {
		before := strings.Join(lines[:c.line], "")
		log := before + strings.TrimSuffix(c.edit(lines[c.line]), "\n") + "\n"
		h, err := perilog.ReplayHousekeeping([]byte(log), perilog.HousekeepingOptions{})
		var at *perilog.HousekeepingLogError
		require.ErrorAs(t, err, &at, log)
		require.ErrorIs(t, err, perilog.ErrHousekeepingLog)
		require.Equal(t, c.line+1, at.Line)
		require.Contains(t, err.Error(), c.want)
		require.True(t, strings.HasPrefix(err.Error(), fmt.Sprintf("perilog: housekeeping: line %d: ", c.line+1)), err)
		if c.line == 0 {
			require.Nil(t, h)
			continue
		}
		want, err := perilog.ReplayHousekeeping([]byte(before), perilog.HousekeepingOptions{})
		require.NoError(t, err)
		require.Equal(t, want.String(), h.String())
		require.NoError(t, h.Check())
	}
}

func TestEventsOutOfOrderEndTheReplay(t *testing.T) {
	lines := hkLines(t)
	end := lines[len(lines)-1] + "\n"
	for name, log := range map[string]string{
		"two starts":         lines[0] + lines[0],
		"no start":           lines[1],
		"after the end":      strings.Join(lines[:len(lines)-1], "") + end + lines[1],
		"a part too many":    lines[0] + `{"timestamp":1795226021.0,"name":"part","context":{"R":"x"}}` + "\n",
		"less than promised": hkParted(2) + `{"timestamp":1795226021.0,"name":"part","context":{"R":"x"}}` + "\n" + lines[1],
	} {
		_, err := perilog.ReplayHousekeeping([]byte(log), perilog.HousekeepingOptions{})
		require.ErrorIs(t, err, perilog.ErrHousekeepingLog, name)
		require.ErrorContains(t, err, ": can not come here", name)
	}
}

// The final fragment is all that is left.
func TestAFinalReleaseOfAPartEndsTheReplay(t *testing.T) {
	f := hkNew(t, hkJob("0-1", nil), perilog.HousekeepingOptions{})
	f.start(0, "0-1")
	f.exit(1, "0-1", 0)
	log := strings.Replace(string(f.log), `"ranks":"0-1","final":true`, `"ranks":"1","final":true`, 1)
	require.NotEqual(t, string(f.log), log)
	_, err := perilog.ReplayHousekeeping([]byte(log), f.o)
	require.ErrorContains(t, err, `line 5: "release": "final": is not what the ranks left tell`)
	log = strings.Replace(log, `"final":true`, `"final":false`, 1)
	h, err := perilog.ReplayHousekeeping([]byte(log), f.o)
	require.NoError(t, err, "a part of what is ready may go back")
	require.Equal(t, "0", h.Status(0).Ready.String())
}

// hkParted is a start whose R comes in parts.
func hkParted(n int) string {
	return fmt.Sprintf(`{"timestamp":1.0,"name":"start","context":{"version":1,"id":"ƒ2","userid":1,"priority":0,"parts":%d}}`, n) + "\n"
}

// hkLarge returns an R of one rank whose text has a given length. Characters of it begin elsewhere with another pad.
func hkLarge(length, pad int) *rset.R {
	const before = `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"starttime":0.0,"expiration":0.0},"scheduling":"`
	text := append([]byte(before), strings.Repeat("x", pad)...)
	for len(text) < length-2 {
		text = append(text, `ƒ\"é`...)
	}
	text = text[:length-2]
	if !utf8.Valid(text) || text[len(text)-1] == '\\' {
		text[len(text)-1] = '.' // what was cut in two
	}
	r, err := rset.Parse(append(text, `"}`...))
	if err != nil {
		panic(err)
	}
	return r
}

// What a scheduler keeps with an R can be larger than a line may be.
func TestAnRThatIsTooLongForALineComesInParts(t *testing.T) {
	const inline = 256 << 10
	for i, n := range []int{
		inline - 1, inline, inline + 1, inline + 2, inline + 3, 2 * inline, 2 * inline, 2 * inline, 2 * inline, 2 * inline,
		2 * inline, 2*inline - 1, 2*inline + 1, 5*inline + 7,
	} {
		r := hkLarge(n, i%6)
		text := r.AppendJSON(nil)
		require.Len(t, text, n)
		j := hkJob("0", nil)
		j.R = r
		h, err := perilog.NewHousekeeping(hkT0, j, perilog.HousekeepingOptions{})
		require.NoError(t, err)
		log := bytes.Clone(h.Take().Log)
		got := []byte{}
		for e, err := range eventlog.Entries(log) {
			require.NoError(t, err)
			var c struct{ R json.RawMessage }
			require.NoError(t, json.Unmarshal(e.Context, &c))
			if e.Name == "part" {
				var part string
				require.NoError(t, json.Unmarshal(c.R, &part))
				require.LessOrEqual(t, len(part), inline)
				got = append(got, part...)
			} else if c.R != nil {
				got = append(got, c.R...)
			}
		}
		require.Equal(t, len(text) > inline, bytes.Contains(log, []byte(`"name":"part"`)))
		require.Equal(t, string(text), string(got))
		again, err := perilog.ReplayHousekeeping(log, perilog.HousekeepingOptions{})
		require.NoError(t, err)
		require.Equal(t, h.String(), again.String())
		hello, err := again.Hello(true)
		require.NoError(t, err)
		require.Equal(t, string(text), string(hello.R.AppendJSON(nil)), "the scheduler's own is there")
		if len(text) > inline { // a crash before the last part
			cut := bytes.LastIndexByte(log[:len(log)-1], '\n') + 1
			again, err = perilog.ReplayHousekeeping(log[:cut], perilog.HousekeepingOptions{})
			require.Nil(t, again)
			require.ErrorIs(t, err, perilog.ErrHousekeepingLog)
		}
	}
	_, err := perilog.ReplayHousekeeping([]byte(hkParted(1)+`{"timestamp":1.0,"name":"part","context":{"R":"{}"}}`+"\n"), perilog.HousekeepingOptions{})
	require.ErrorContains(t, err, `perilog: housekeeping: line 2: "part": "R": rset: `)
}

func TestAJobThatCanNotBeUsedIsRefused(t *testing.T) {
	many := new(idset.Set)
	many.InsertRange(0, perilog.MaxHousekeepingRanks)
	large, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: many, Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	names := make([]string, perilog.MaxHousekeepingNames+1)
	for i := range names {
		names[i] = fmt.Sprint("ssd", i)
	}
	for name, c := range map[string]struct {
		now   eventlog.Timestamp
		edit  func(*perilog.HousekeepingJob)
		field string
	}{
		"bypass":             {hkT0, func(j *perilog.HousekeepingJob) { j.Bypass = true }, "Bypass"},
		"no time":            {0, func(*perilog.HousekeepingJob) {}, "now"},
		"never":              {hkNever(), func(*perilog.HousekeepingJob) {}, "now"},
		"not a number":       {hkNoTime(), func(*perilog.HousekeepingJob) {}, "now"},
		"submitted early":    {hkT0, func(j *perilog.HousekeepingJob) { j.Submitted = -1 }, "Submitted"},
		"negative duration":  {hkT0, func(j *perilog.HousekeepingJob) { j.ReleaseAfter = hkAfter(-1) }, "ReleaseAfter"},
		"too many ranks":     {hkT0, func(j *perilog.HousekeepingJob) { j.R = large }, "R"},
		"free not in R":      {hkT0, func(j *perilog.HousekeepingJob) { j.Free = hkRanks("0-1") }, "Free"},
		"too many names":     {hkT0, func(j *perilog.HousekeepingJob) { j.Named = names }, "Named"},
		"a name twice":       {hkT0, func(j *perilog.HousekeepingJob) { j.Named = []string{"b", "a", "b"} }, "Named"},
		"an empty name":      {hkT0, func(j *perilog.HousekeepingJob) { j.Named = []string{""} }, "Named"},
		"a name not in UTF8": {hkT0, func(j *perilog.HousekeepingJob) { j.Named = []string{"\xff"} }, "Named"},
		"names too long":     {hkT0, func(j *perilog.HousekeepingJob) { j.Named = []string{strings.Repeat("x", 1<<20)} }, "R or Named"},
	} {
		j := hkJob("0", nil)
		c.edit(&j)
		h, err := perilog.NewHousekeeping(c.now, j, perilog.HousekeepingOptions{})
		require.Nil(t, h, name)
		var bad *perilog.HousekeepingError
		require.ErrorAs(t, err, &bad, name)
		require.Equal(t, c.field, bad.Field, name)
		require.ErrorIs(t, err, perilog.ErrHousekeeping, name)
		require.True(t, strings.HasPrefix(err.Error(), "perilog: housekeeping: "+c.field+": "), err)
	}
	many.Remove(0)
	large, err = large.Restrict(many)
	require.NoError(t, err)
	_, err = perilog.NewHousekeeping(hkT0, perilog.HousekeepingJob{R: large}, perilog.HousekeepingOptions{})
	require.NoError(t, err, "as many as are allowed")
}

func TestAUserWhoFinishesByForceHasAName(t *testing.T) {
	f := hkNew(t, hkJob("0-1", nil), perilog.HousekeepingOptions{})
	before := f.h.String()
	for _, user := range []string{"", strings.Repeat("x", 257), "\xff"} {
		_, err := f.h.ForceFinish(hkT0, hkRanks("0"), user)
		require.ErrorIs(t, err, perilog.ErrHousekeeping)
		require.ErrorContains(t, err, "perilog: housekeeping: user: ")
		require.True(t, f.h.Take().IsEmpty())
		require.Equal(t, before, f.h.String())
	}
	_, err := f.h.ForceFinish(hkT0, hkRanks("0"), strings.Repeat("é\n", 85))
	require.NoError(t, err)
	f.step()
	require.Contains(t, string(f.log), `é\né`)
	_, err = f.h.ForceFinish(hkT0, nil, "root")
	require.NoError(t, err)
	f.step()
}

// The longest sets of ranks that are allowed fit in a line.
func TestTheMostScatteredRanksFitInALine(t *testing.T) {
	scattered := new(idset.Set)
	for i := range uint32(perilog.MaxHousekeepingRanks) {
		scattered.Insert(rset.MaxRank - 2*i)
	}
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: scattered, Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	h, err := perilog.NewHousekeeping(hkT0, perilog.HousekeepingJob{Job: 1, R: r}, perilog.HousekeepingOptions{})
	require.NoError(t, err)
	_, err = h.Start(hkT0, perilog.Spec{})
	require.NoError(t, err)
	_, err = h.ForceFinish(hkT0, scattered, "root")
	require.NoError(t, err)
	require.True(t, h.Done())
	again, err := perilog.ReplayHousekeeping(h.Take().Log, perilog.HousekeepingOptions{})
	require.NoError(t, err)
	require.True(t, again.Done())
}
