package jobstate_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
)

// logOf writes a script as a log, a second a line.
func logOf(lines ...string) string {
	var b strings.Builder
	for i, line := range lines {
		name, context, ok := strings.Cut(line, " ")
		fmt.Fprintf(&b, `{"timestamp":%d.5,"name":%q`, 1000+i, name)
		if ok {
			b.WriteString(`,"context":` + context)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

var whole = []string{
	submit, "validate", "depend", `priority {"priority":16}`, "alloc", "start", `finish {"status":0}`,
	`release {"ranks":"all","final":true}`, "free", "clean",
}

// with returns the whole script with lines put in before line n, from 1.
func with(n int, lines ...string) []string {
	return append(append(append([]string{}, whole[:n-1]...), lines...), whole[n-1:]...)
}

func without(n int) []string { return append(append([]string{}, whole[:n-1]...), whole[n:]...) }

// findings returns what Validate finds, as text.
func findings(log string) (out []string) {
	for _, f := range jobstate.Validate([]byte(log)) {
		out = append(out, f.String())
	}
	return out
}

// SM-12.
func TestValidateNamesEachViolation(t *testing.T) {
	prolog, epilog := `prolog-start {"description":"p"}`, `epilog-start {"description":"e"}`
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"a good log":                          {whole, nil},
		"a good log, half way":                {whole[:5], nil},
		"no version":                          {append([]string{`submit {"userid":5,"urgency":16,"flags":0}`}, whole[2:]...), []string{"line 1: submit: note: has no version: the log follows the rules before version 1"}},
		"validate, but no version":            {append([]string{`submit {"userid":5,"urgency":16,"flags":0}`}, whole[1:]...), []string{"line 1: submit: note: has no version: the log follows the rules before version 1"}},
		"an unknown version":                  {append([]string{`submit {"userid":5,"urgency":16,"flags":0,"version":9}`}, whole[1:2]...), []string{"line 1: submit: error: unsupported version of the log format"}},
		"no submit":                           {without(1), []string{"line 1: validate: error: comes before submit, which must be the first event"}},
		"two submits":                         {with(2, submit), []string{"line 2: submit: error: appears twice"}},
		"a second validate":                   {with(3, "validate"), []string{"line 3: validate: error: is out of order: the job is in DEPEND"}},
		"an out-of-order alloc":               {with(3, "alloc"), []string{"line 3: alloc: error: is out of order: the job is in DEPEND"}},
		"depend before its dependencies":      {with(3, `dependency-add {"description":"a"}`), []string{`line 4: depend: error: dependencies are not satisfied: 1, the first is "a"`}},
		"a dependency added twice":            {with(3, `dependency-add {"description":"a"}`, `dependency-add {"description":"a"}`, `dependency-remove {"description":"a"}`), []string{`line 4: dependency-add: note: dependency "a" was added before`}},
		"a dependency that never was":         {with(3, `dependency-remove {"description":"a"}`), []string{`line 3: dependency-remove: error: dependency "a" was never added`}},
		"a dependency removed twice":          {with(3, `dependency-add {"description":"a"}`, `dependency-remove {"description":"a"}`, `dependency-remove {"description":"a"}`), []string{`line 5: dependency-remove: error: dependency "a" was removed before`}},
		"a satisfied dependency again":        {with(3, `dependency-add {"description":"a"}`, `dependency-remove {"description":"a"}`, `dependency-add {"description":"a"}`), []string{"line 5: dependency-add: error: dependency was already satisfied"}},
		"a dependency too late":               {with(6, `dependency-add {"description":"a"}`), []string{"line 6: dependency-add: error: is out of order: the job is in RUN"}},
		"a missing key":                       {with(5, `urgency {"urgency":1}`, `priority {"priority":1}`), []string{`line 5: urgency: error: malformed context: userid: offset 0: key is missing`}},
		"a mistyped key":                      {append([]string{`submit {"userid":"5","urgency":16,"flags":0,"version":1}`}, whole[1:]...), []string{`line 1: submit: error: malformed context: userid: offset 10: must be an integer`}},
		"a bad priority":                      {append(append([]string{}, whole[:3]...), append([]string{`priority {"priority":-1}`}, whole[4:]...)...), []string{`line 4: priority: error: malformed context: priority: offset 12: must be from 0 to 9223372036854775807`}},
		"an exception without a note":         {with(6, `exception {"type":"x","severity":3}`), []string{`line 6: exception: error: malformed context: note: key is missing`}},
		"a fatal exception in NEW":            {with(2, `exception {"type":"x","severity":0,"note":""}`), []string{"line 2: exception: error: is fatal, and the job is in NEW"}},
		"start before a prolog ended":         {with(6, prolog), []string{`line 7: start: error: prolog "p" has not finished`, `line 10: free: error: the resources are freed early: prolog "p" has not finished`, `line 11: clean: error: prolog "p" has not finished`}},
		"start after a prolog failed":         {with(6, prolog, `prolog-finish {"description":"p","status":1}`), []string{`line 8: start: error: prolog "p" has failed`}},
		"a prolog after start":                {with(7, prolog), []string{"line 7: prolog-start: error: the job has started: a prolog can no longer hold it"}},
		"start before alloc":                  {append(append([]string{}, whole[:4]...), "start"), []string{"line 5: start: error: is out of order: the job is in SCHED"}},
		"two starts":                          {with(7, "debug.x", "start"), []string{"line 8: start: error: appears twice"}},
		"two allocs":                          {with(6, "debug.x", "alloc"), []string{"line 7: alloc: error: is out of order: the job is in RUN"}},
		"finish without start":                {without(6), []string{"line 6: finish: note: the job did not start"}},
		"two finishes":                        {with(8, `finish {"status":1}`), []string{"line 8: finish: error: appears twice"}},
		"free while an epilog runs":           {with(8, epilog), []string{`line 10: free: error: the resources are freed early: epilog "e" has not finished`, `line 11: clean: error: epilog "e" has not finished`}},
		"clean while an epilog runs":          {with(10, epilog), []string{"line 10: epilog-start: error: starts after the final release: its ranks may be in use by others", `line 11: clean: error: epilog "e" has not finished`}},
		"an epilog that ends":                 {with(8, epilog, `epilog-finish {"description":"e","status":3}`), nil},
		"a finish of no epilog":               {with(8, `epilog-finish {"description":"e","status":3}`), []string{`line 8: epilog-finish: note: no epilog "e" is active`}},
		"free before the final release":       {without(8), []string{"line 8: free: error: no final release came before it"}},
		"free in RUN":                         {with(7, "free"), []string{"line 7: free: error: is out of order: the job is in RUN", "line 10: free: error: the resources are already free"}},
		"free twice":                          {with(10, "memo {}", "free"), []string{"line 11: free: error: the resources are already free"}},
		"free of nothing":                     {append(append([]string{}, whole[:4]...), `exception {"type":"cancel","severity":0,"note":""}`, "free", "clean"), []string{"line 6: free: error: the job has no resources"}},
		"clean with resources":                {without(9), []string{"line 9: clean: error: the job still holds resources"}},
		"clean in RUN":                        {append(append([]string{}, whole[:5]...), "clean"), []string{"line 6: clean: error: is out of order: the job is in RUN"}},
		"release after the final one":         {with(9, `release {"ranks":"1","final":false}`), []string{"line 9: release: error: comes after the final release"}},
		"release of ranks twice":              {with(8, `release {"ranks":"0-3","final":false}`, `release {"ranks":"3-4","final":false}`), []string{"line 9: release: error: releases ranks a second time: 3"}},
		"release without resources":           {append(append([]string{}, whole[:4]...), `exception {"type":"cancel","severity":0,"note":""}`, `release {"ranks":"all","final":true}`), []string{"line 6: release: error: the job has no resources"}},
		"release without start (RFC 32)":      {append(append([]string{}, whole[:5]...), `exception {"type":"exec","severity":0,"note":""}`, `release {"ranks":"all","final":true}`, "free", "clean"), nil},
		"a late alloc":                        {append(append([]string{}, whole[:4]...), `exception {"type":"cancel","severity":0,"note":""}`, "alloc", "free", "clean"), nil},
		"anything after clean":                {append(append([]string{}, whole...), "memo {}", "made-up"), []string{"line 11: memo: error: comes after the end of the log", "line 12: made-up: error: comes after the end of the log"}},
		"anything after invalidate":           {[]string{submit, "invalidate", "validate"}, []string{"line 3: validate: error: comes after the end of the log"}},
		"a context where there must be none":  {append(append([]string{}, whole[:8]...), `free {"a":1}`, "clean {}"), []string{"line 9: free: error: its context must be empty"}},
		"a context where none is defined":     {append([]string{submit, `validate {"a":1}`}, whole[2:]...), []string{"line 2: validate: note: has a context, which RFC 21 does not define"}},
		"a real expiration":                   {with(7, `resource-update {"expiration":5.5}`), []string{"line 7: resource-update: note: expiration is a real number"}},
		"an integer expiration":               {with(7, `resource-update {"expiration":5}`), nil},
		"an update of another key":            {with(3, `jobspec-update {"version":2}`), []string{`line 3: jobspec-update: error: malformed context: version: offset 11: must be attributes, resources or tasks, or a path below one`}},
		"an update of tasks":                  {with(3, `jobspec-update {"tasks":[]}`), nil},
		"an update of nothing":                {with(3, `jobspec-update {}`), []string{"line 3: jobspec-update: error: sets nothing"}},
		"a priority above 32 bits":            {append(append([]string{}, whole[:3]...), `priority {"priority":4294967296}`), []string{"line 4: priority: error: priority is above 4294967295"}},
		"unknown names are data":              {with(3, "made-up", `debug.alloc-request {"a":1}`), nil},
		"a bad alloc does not spoil the rest": {append(append([]string{}, whole[:4]...), append([]string{`alloc {"annotations":1}`}, whole[5:]...)...), []string{`line 5: alloc: error: malformed context: annotations: offset 15: must be an object`}},
		"a bad finish does not spoil it":      {append(append([]string{}, whole[:6]...), append([]string{`finish {}`}, whole[7:]...)...), []string{`line 7: finish: error: malformed context: status: offset 0: key is missing`}},
		"a bad exception is still fatal":      {append(append([]string{}, whole[:6]...), `exception {"severity":0,"note":""}`, whole[7], "free", "clean"), []string{`line 7: exception: error: malformed context: type: offset 0: key is missing`, "line 10: clean: note: the job started and did not finish"}},
		"a bad prolog-finish ends the prolog": {with(6, prolog, `prolog-finish {"description":"p"}`), []string{`line 7: prolog-finish: error: malformed context: status: offset 0: key is missing`}},
		"a bad epilog-finish ends the epilog": {with(8, epilog, `epilog-finish {"description":"e"}`), []string{`line 9: epilog-finish: error: malformed context: status: offset 0: key is missing`}},
		"a bad submit without a version":      {append([]string{`submit {"userid":5,"urgency":99,"flags":0}`}, whole[2:]...), []string{`line 1: submit: error: malformed context: urgency: offset 22: must be from 0 to 31`}},
		"clean of a job that still runs":      {append(append([]string{}, whole[:6]...), `exception {"type":"scheduler-restart","severity":0,"note":""}`, "clean"), []string{"line 8: clean: error: no final release came before it"}},
		"release after free":                  {append(append([]string{}, whole[:7]...), `release {"ranks":"0","final":false}`, "free", `release {"ranks":"1","final":true}`, "clean"), []string{"line 9: free: error: no final release came before it", "line 10: release: error: the resources are already free"}},
		"start after free":                    {append(append([]string{}, whole[:5]...), `exception {"type":"exec","severity":0,"note":""}`, "free", "start"), []string{"line 8: start: error: the job has no resources"}},
		"no finish at all":                    {append(append([]string{}, whole[:6]...), `exception {"type":"x","severity":0,"note":""}`, whole[7], "free", "clean"), []string{"line 10: clean: note: the job started and did not finish"}},
		"alloc after free":                    {append(append([]string{}, whole[:9]...), "alloc"), []string{"line 10: alloc: error: appears twice"}},
		"release after all ranks":             {append(append([]string{}, whole[:7]...), `release {"ranks":"all","final":false}`, `release {"ranks":"1","final":true}`), []string{"line 9: release: error: comes after the release of all ranks"}},
		"a bad finish is a finish":            {append(append([]string{}, whole[:6]...), append([]string{`finish {}`}, whole[6:]...)...), []string{`line 7: finish: error: malformed context: status: offset 0: key is missing`, "line 8: finish: error: appears twice"}},
		"a bad release does not spoil it":     {append(append([]string{}, whole[:7]...), append([]string{`release {"final":true}`}, whole[8:]...)...), []string{`line 8: release: error: malformed context: ranks: offset 0: key is missing`}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, findings(logOf(c.lines...)))
		})
	}
}

// TestValidateJudgesTheDialect: an entry of this library's own events that names
// what is not so.
func TestValidateJudgesTheDialect(t *testing.T) {
	prolog := `prolog-start {"description":"p","per-rank":true,"attempt":1}`
	end := `prolog-finish {"description":"p","status":0}`
	late := "starts after the final release: its ranks may be in use by others"
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"a good life": {with(6, prolog, `perilog-fail {"description":"p","kind":"prolog","ranks":"3","cause":"exited","status":256,"drain":true}`,
			`perilog-launch {"description":"p","kind":"prolog","attempt":2,"ranks":"3"}`, `drained {"ranks":"3"}`,
			`perilog-release {"description":"p","kind":"prolog","ranks":"0-3","status":0}`, end), nil},
		"a drop, then drained":   {with(7, `exception {"type":"x","severity":2,"note":"","ranks":"3","action":"drop"}`, `drained {"ranks":"3"}`), nil},
		"drained without a fail": {with(7, `drained {"ranks":"3-5"}`), []string{"line 7: drained: error: ranks did not fail: 3-5"}},
		"a launch of nothing":    {with(6, `perilog-launch {"description":"p","kind":"prolog","attempt":2,"ranks":"3"}`), []string{`line 6: perilog-launch: error: no prolog "p" is active`}},
		"a fail of nothing":      {with(6, `perilog-fail {"description":"p","kind":"prolog","ranks":"3","cause":"x","status":1}`), []string{`line 6: perilog-fail: error: no prolog "p" is active`}},
		"a release of nothing":   {with(8, `perilog-release {"description":"e","kind":"epilog","ranks":"3","status":1}`), []string{`line 8: perilog-release: error: no epilog "e" is active`}},
		"a release of the other": {with(6, prolog, `perilog-release {"description":"p","kind":"epilog","ranks":"3","status":1}`, end), []string{`line 7: perilog-release: error: no epilog "p" is active`}},
		"an attempt again":       {with(6, prolog, `perilog-launch {"description":"p","kind":"prolog","attempt":1,"ranks":"3"}`, end), []string{"line 7: perilog-launch: error: attempt 1 does not grow: the last one was 1"}},
		"an older attempt": {with(6, prolog, `perilog-launch {"description":"p","kind":"prolog","attempt":3,"ranks":"3"}`, `perilog-launch {"description":"p","kind":"prolog","attempt":2,"ranks":"3"}`, end),
			[]string{"line 8: perilog-launch: error: attempt 2 does not grow: the last one was 3"}},
		"attempts of a new life":                              {with(6, prolog, `perilog-launch {"description":"p","kind":"prolog","attempt":3,"ranks":"3"}`, end, prolog, `perilog-launch {"description":"p","kind":"prolog","attempt":2,"ranks":"3"}`, end), nil},
		"a launch of an action not yet started":               {with(6, `prolog-start {"description":"p","leader":0}`, `perilog-launch {"description":"p","kind":"prolog","attempt":1,"ranks":"0"}`, end), nil},
		"an epilog of another writer after the final release": {with(9, `epilog-start {"description":"e"}`, `epilog-finish {"description":"e","status":0}`), []string{"line 9: epilog-start: note: " + late}},
		"an epilog of ours after the final release":           {with(9, `epilog-start {"description":"e","leader":0}`, `epilog-finish {"description":"e","status":0}`), []string{"line 9: epilog-start: error: " + late}},
		"an epilog of ours after a final release in RUN":      {append(append([]string{}, whole[:6]...), `release {"ranks":"all","final":true}`, `finish {"status":0}`, `epilog-start {"description":"e","leader":0}`, `epilog-finish {"description":"e","status":0}`, "free", "clean"), nil},
		"an epilog after free":                                {with(10, `epilog-start {"description":"e"}`, `epilog-finish {"description":"e","status":0}`), []string{"line 10: epilog-start: error: " + late}},
		"events of housekeeping are unknown":                  {with(7, `housekeeping-start {"description":"h"}`), nil},
		"and malformed all the same":                          {with(7, `housekeeping-start {}`), []string{"line 7: housekeeping-start: error: malformed context: description: offset 0: key is missing"}},
		"and before submit":                                   {[]string{`housekeeping-start {}`, "validate"}, []string{"line 1: housekeeping-start: error: comes before submit, which must be the first event", "line 1: housekeeping-start: error: malformed context: description: offset 0: key is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, findings(logOf(c.lines...)))
		})
	}
}

func TestValidateNamesBadLines(t *testing.T) {
	good := logOf(whole[:2]...)
	require.Equal(t, []string{"line 1: error: the log is empty"}, findings(""))
	require.Equal(t, []string{"line 2: error: the last line is torn: it has no newline"}, findings(good[:len(good)-1]))
	got := findings(good + "{}\n" + `{"timestamp":1003.5,"name":"depend"}` + "\n")
	require.Len(t, got, 1, "the line after a bad one is read: %q", got)
	require.Equal(t, fmt.Sprintf("line 3: error: not an entry: offset %d: timestamp: key is missing", len(good)), got[0])
	require.Equal(t, []string{"line 3: validate: note: repeats the entry before it"}, findings(good+strings.SplitAfter(good, "\n")[1]))
	require.Equal(t, []string{"line 3: depend: note: is older than the entry before it"}, findings(good+`{"timestamp":5.5,"name":"depend"}`+"\n"))
	memo := `{"timestamp":1009.5,"name":"memo","context":{}}` + "\n"
	got = findings(good + memo + strings.Replace(memo, "{}", `{"a":{"b":1}}`, 1) + strings.Replace(memo, "memo", "finish", 1) + memo)
	require.Equal(t, []string{
		"line 5: finish: error: is out of order: the job is in DEPEND",
		"line 5: finish: error: malformed context: status: offset 0: key is missing",
	}, got)
	got = findings(good + strings.Replace(memo, "memo", "depend", 1) + strings.Replace(memo, "memo", "priority", 1) + strings.Replace(memo, "memo", "depend", 1))
	require.Equal(t, []string{
		"line 4: priority: error: malformed context: priority: offset 0: key is missing",
		"line 5: depend: error: is out of order: the job is in SCHED",
	}, got, "what follows a bad entry does not repeat the one before it")
	other := strings.Replace(memo, "memo", "made-up", 1)
	require.Equal(t, []string{"line 4: made-up: note: repeats the entry before it"}, findings(good+other+other))
	for _, f := range jobstate.Validate([]byte(good + "x\n")) {
		require.Equal(t, int64(len(good)), f.Offset)
	}
}

func TestFindingsAreBounded(t *testing.T) {
	found := jobstate.Validate([]byte(strings.Repeat("\n", 50_000)))
	require.Len(t, found, jobstate.MaxFindings)
	require.Equal(t, "there are more findings", found[jobstate.MaxFindings-1].Text)
	found = jobstate.Validate([]byte(strings.Repeat("\n", jobstate.MaxFindings)))
	require.Len(t, found, jobstate.MaxFindings)
	require.NotEqual(t, "there are more findings", found[jobstate.MaxFindings-1].Text)
}

// TestAWholeLogIsGoodAndEachLostLineIsNot: every line of a good log but those
// that RFC 32 makes optional is missed by Validate.
func TestAWholeLogIsGoodAndEachLostLineIsNot(t *testing.T) {
	for n := 1; n <= len(whole); n++ {
		errs := 0
		for _, f := range jobstate.Validate([]byte(logOf(without(n)...))) {
			if f.Level == jobstate.LevelError {
				errs++
			}
		}
		if n == 6 || n == len(whole) { // start may be missing; without clean the log is merely not over
			require.Zero(t, errs, "line %d", n)
		} else {
			require.NotZero(t, errs, "line %d: %s", n, whole[n-1])
		}
	}
}

func TestValidateCostsInProportion(t *testing.T) {
	validate := func(n int) func() {
		var ranks, log strings.Builder
		for i := range n {
			fmt.Fprintf(&ranks, "%d,", i*67000)
		}
		log.WriteString(logOf(append(upTo(jobstate.StateRun), `prolog-start {"description":"p"}`,
			`perilog-fail {"description":"p","kind":"prolog","ranks":"`+ranks.String()+`2147483647","cause":"failed","status":1}`)...))
		for i := range n {
			fmt.Fprintf(&log, `{"timestamp":%d.5,"name":"drained","context":{"ranks":"0,2147483647"}}`+"\n", 10_000+i)
		}
		text := []byte(log.String())
		return func() { require.Empty(t, jobstate.Validate(text)) }
	}
	require.Less(t, elapsed(validate(32_000)), 64*elapsed(validate(2_000)), "16 times as many")
}

// What a finding repeats of many ranks is cut, and the rest is not written.
func TestAFindingOfManyRanksCostsLittle(t *testing.T) {
	const n, times = 40_000, 100
	var even strings.Builder
	for i := range n {
		fmt.Fprintf(&even, "%d,", 2*i)
	}
	ranks := even.String() + "100000"
	begin := append(upTo(jobstate.StateRun), `exception {"type":"x","severity":1,"note":"","action":"keep","ranks":"`+ranks+`"}`, `release {"ranks":"`+ranks+`","final":false}`)
	used := func(times int) uint64 {
		lines := slices.Clone(begin)
		for range times {
			lines = append(lines, `drained {"ranks":"0-100000"}`, `release {"ranks":"0-100000","final":false}`)
		}
		text := []byte(logOf(lines...))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		found := jobstate.Validate(text)
		runtime.ReadMemStats(&after)
		require.Len(t, found, 2*times)
		if times > 0 {
			require.Equal(t, "ranks did not fail: 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,41,43,45,", found[0].Text)
			require.Equal(t, "releases ranks a second time: 0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,", found[1].Text)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, int(used(times)-used(0))/(2*times), n, "bytes for each line: a bit for each rank, some times over")
}
