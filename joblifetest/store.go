package joblifetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
)

// A Store is what [CheckStore] tests: it keeps the records of a Manager for the next one.
// If it has a method Fail(), that lets the next Append fail when it has stored some of the
// records, and CheckStore tests what is left of it.
type Store interface {
	// Append and Unlink are what package loop asks of a store.
	Append(records []joblife.Record) error
	Unlink(ctx context.Context, ids []jobid.ID) (failed map[jobid.ID]error, err error)
	// Records yields what is stored, for [joblife.Restore]. It ends at the first error.
	Records() iter.Seq2[joblife.Record, error]
	// Close ends the use of the store, before it is opened again.
	Close() error
}

// CheckStore returns the first promise that a store does not keep, and what to do about it. What
// Append has stored is there when the store is opened again, in order and to the byte, except white
// space in jobspecs, also the greatest records of a Manager and 20,000 at once. Unlink removes jobs
// for good, 1000 at once, and no others. A store keeps all records, or those of jobs that are not
// unlinked: what Restore makes of them is what it makes of all.
//
// Open opens the store of a name, such as a file, a table or a stream; a new one is empty.
// CheckStore closes a store before it opens it again, and asks for 10 names. It takes some
// hundred MB of memory. It does not see what survives a crash of the process or the machine, such
// as what is written at Close alone: to test that, let Close do as a crash does.
func CheckStore(open func(name string) (Store, error)) error {
	for i, c := range storeChecks {
		k := &keeper{
			now:  epoch().Add(time.Hour),
			cfg:  joblife.Config{Queues: []string{"batch", "debug"}},
			open: func() (Store, error) { return open(fmt.Sprintf("store%d", i)) },
		}
		err := k.reopen()
		if err == nil {
			err = c.run(k)
		}
		if k.store != nil {
			err = errors.Join(err, k.store.Close())
		}
		if err != nil {
			return fmt.Errorf("joblifetest: store: %s: %w", c.name, err)
		}
	}
	return nil
}

// A keeper is a Manager with a store, beside a memory of what should be in it.
type keeper struct {
	open     func() (Store, error)
	cfg      joblife.Config
	m        *joblife.Manager // as restored from the store
	now      time.Time
	store    Store
	want     []joblife.Record
	scribble bool  // over what a call was given, after it
	fault    error // of the store, in the random world
}

var storeChecks = [...]struct {
	name string
	run  func(*keeper) error
}{
	{"calls with nothing do nothing", func(k *keeper) error {
		if err := errors.Join(k.append(nil), k.append([]joblife.Record{})); err != nil {
			return err
		}
		if err := k.unlink(); err != nil {
			return err
		}
		if err := k.unlink(7); err != nil {
			return err
		}
		for r, err := range k.store.Records() {
			return cmp.Or(err, fmt.Errorf("there is a %v record of %v, and nothing was stored", r.Kind, r.Job))
		}
		return nil
	}},
	{"jobs live and are purged", (*keeper).purges},
	{"slices are not kept, nor changed", func(k *keeper) error {
		k.scribble = true
		return k.purges()
	}},
	{"an Append that fails", (*keeper).fails},
	{"random jobs", func(k *keeper) error { return k.world(1) }},
	{"random jobs", func(k *keeper) error { return k.world(2) }},
	{"random jobs", func(k *keeper) error { return k.world(3) }},
	{"random jobs", func(k *keeper) error { return k.world(4) }},
	{"the greatest records", (*keeper).greatest},
	{"many at once", (*keeper).many}, // it takes the longest
}

// memory yields records.
func memory(list []joblife.Record) iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// reopen opens the store again, compares it, and goes on with what it has.
func (k *keeper) reopen() error {
	list, err := k.read()
	if err != nil {
		return err
	}
	if err := k.compare(list); err != nil {
		return err
	}
	k.m, _, err = joblife.Restore(k.now, k.cfg, memory(list))
	return err
}

// same reports whether records are equal.
func same(a, b joblife.Record) bool {
	return a.Job == b.Job && a.Kind == b.Kind && a.Time == b.Time && bytes.Equal(a.Data, b.Data)
}

// compare returns how records differ from what should be there.
func (k *keeper) compare(list []joblife.Record) error {
	if slices.EqualFunc(list, k.want, same) {
		return nil
	}
	got, want := partsOf(list), partsOf(k.want)
	for _, id := range slices.Sorted(maps.Keys(want)) {
		for kind := joblife.RecordEvent; kind <= joblife.RecordHousekeeping; kind++ {
			if err := differs(id, kind, got[id][kind], want[id][kind]); err != nil {
				return err
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if want[id] == nil {
			return fmt.Errorf("job %v is there, and it was unlinked: let Unlink remove all of it, durably, or keep the record that says so", id)
		}
	}
	found, err := k.snapshot(list)
	if err != nil {
		return fmt.Errorf("a restart refuses what is stored: %w", err)
	}
	expected, err := k.snapshot(k.want)
	found, expected = append(found, "nothing"), append(expected, "nothing")
	i := 0
	for i < min(len(found), len(expected))-1 && found[i] == expected[i] {
		i++
	}
	if found[i] != expected[i] {
		return fmt.Errorf("a restart finds\n\t%.300s\nand should find\n\t%.300s\nso such a record is missing, too old, or there although another replaced it", found[i], expected[i])
	}
	return err
}

// read opens the store again and returns its records.
func (k *keeper) read() (list []joblife.Record, err error) {
	if k.store != nil {
		if err := k.store.Close(); err != nil {
			return nil, fmt.Errorf("on Close: %w", err)
		}
	}
	if k.store, err = k.open(); err != nil {
		k.store = nil
		return nil, fmt.Errorf("open: %w", err)
	}
	for range k.store.Records() {
		break
	}
	for r, err := range k.store.Records() {
		if err != nil {
			return nil, fmt.Errorf("on Records: %w", err)
		}
		list = append(list, r.Clone())
	}
	return list, nil
}

// partsOf returns what a store keeps of each job that is not unlinked.
func partsOf(list []joblife.Record) map[jobid.ID]map[joblife.RecordKind][]byte {
	all := make(map[jobid.ID]map[joblife.RecordKind][]byte)
	for _, r := range list {
		switch r.Kind {
		case joblife.RecordEvent, joblife.RecordHousekeeping, joblife.RecordJobspec, joblife.RecordR:
			if all[r.Job] == nil {
				all[r.Job] = make(map[joblife.RecordKind][]byte)
			}
			data := r.Data
			if r.Kind == joblife.RecordJobspec || r.Kind == joblife.RecordR {
				all[r.Job][r.Kind] = nil
				if dense := new(bytes.Buffer); json.Compact(dense, data) == nil { // as joblife.AppendRecords does
					data = dense.Bytes()
				}
			}
			all[r.Job][r.Kind] = append(all[r.Job][r.Kind], data...)
		}
	}
	for _, r := range list {
		if r.Kind == joblife.RecordUnlinked {
			delete(all, r.Job)
		}
	}
	return all
}

// differs returns how what is stored of a job differs.
func differs(id jobid.ID, kind joblife.RecordKind, got, want []byte) error {
	if string(got) == string(want) {
		return nil
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	where := fmt.Sprintf("the %v records of job %v", kind, id)
	switch begin := max(0, at-guard.MaxQuoted/2); {
	case len(got) == 0:
		return fmt.Errorf("%s are missing: Append has to store them before it returns, and Unlink of another job not to remove them", where)
	case at == len(got):
		return fmt.Errorf("%s end after %d of %d bytes: store whole records, of up to %d bytes each", where, at, len(want), eventlog.DefaultMaxLine)
	default:
		return fmt.Errorf("%s differ at byte %d of %d: %s, want %s: yield them in order, as they were when Append had them",
			where, at, len(want), guard.Quote(got[begin:]), guard.Quote(want[begin:]))
	}
}

// snapshot returns what a restart makes of records, as lines.
func (k *keeper) snapshot(list []joblife.Record) ([]string, error) {
	m, left, err := joblife.Restore(k.now, k.cfg, memory(list))
	if err != nil {
		return nil, err
	}
	text, err := joblife.AppendRecords(nil, slices.Collect(m.Snapshot()))
	out := strings.Split(string(text), "\n")
	for _, q := range left.Quarantined {
		out = append(out, fmt.Sprintf("job %v is quarantined: %v", q.Job, q.Err))
	}
	return out, err
}

// append stores records, and remembers them.
func (k *keeper) append(list []joblife.Record) error {
	given := slices.Clone(list)
	for i, r := range list {
		given[i] = r.Clone()
		k.want = append(k.want, r.Clone())
	}
	err := k.store.Append(given)
	for i, r := range list {
		if !same(given[i], r) {
			return fmt.Errorf("on Append: it changed record %d of the slice that it was given: copy what is to change", i)
		}
		if k.scribble {
			clear(given[i].Data)
			given[i] = joblife.Record{Job: 1 << 60, Kind: joblife.RecordUnlinked}
		}
	}
	if err != nil {
		return fmt.Errorf("on Append of %d records: %w", len(list), err)
	}
	return nil
}

// unlink removes jobs. A call whose context has ended may remove them or not, but it removes no
// part of a job.
func (k *keeper) unlink(ids ...jobid.ID) error {
	call := func(ctx context.Context) error {
		given := slices.Clone(ids)
		failed, err := k.store.Unlink(ctx, given)
		if !slices.Equal(given, ids) {
			return errors.New("it changed the slice that it was given: copy what is to change")
		}
		clear(given)
		for _, id := range ids {
			if err = cmp.Or(err, failed[id]); err != nil {
				return fmt.Errorf("%w: a job of which nothing is stored is no error", err)
			}
		}
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	said := call(ctx)
	left, err := k.half(ids)
	if err != nil {
		return fmt.Errorf("on Unlink with a context that has ended: %w", err)
	}
	for range 2 { // again, as after a crash
		if err := call(context.Background()); err != nil {
			return fmt.Errorf("on Unlink of %d jobs: %w", len(ids), err)
		}
	}
	n, err := k.half(ids)
	if err == nil && said == nil && n < left {
		err = fmt.Errorf("on Unlink with a context that has ended: no error, and %d jobs were left: return the error of the context", left-n)
	}
	return err
}

// half compares after Unlink of some jobs, before the records that say so, and returns how many
// jobs are left: a store may keep all.
func (k *keeper) half(ids []jobid.ID) (left int, err error) {
	list, err := k.read()
	if err != nil {
		return 0, err
	}
	got, want := partsOf(list), k.want
	defer func() { k.want = want }()
	for id := range partsOf(want) {
		switch {
		case !slices.Contains(ids, id):
		case got[id] != nil:
			left++
		default:
			k.want = append(slices.Clip(k.want), joblife.Record{Job: id, Kind: joblife.RecordUnlinked})
		}
	}
	return left, k.compare(list)
}

// step passes inputs to the Manager, and does what follows.
func (k *keeper) step(inputs ...joblife.Input) error {
	for _, in := range inputs {
		if err := k.m.Step(k.now, in); err != nil {
			return fmt.Errorf("the Manager that was restored refuses %T: %w", in, err)
		}
	}
	for rd := new(joblife.Ready); k.m.Ready(rd); {
		ids := slices.Clone(rd.Unlink)
		err := k.append(rd.Append)
		if err == nil && len(ids) > 0 {
			err = k.unlink(ids...)
		}
		if err == nil {
			err = k.m.Done(rd.Seq)
		}
		if err == nil && len(ids) > 0 {
			err = k.m.Step(k.now, joblife.Unlinked{IDs: ids})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// submit returns a job with an argument, a text of JSON. Its jobspec has two lines.
func submit(id jobid.ID, arg string) joblife.Input {
	const spec = `{"version":1,"resources":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]}],` +
		`"tasks":[{"command":["%s"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":0,"queue":"batch"}}` + "\n}"
	return joblife.Submit{ID: id, Jobspec: fmt.Appendf(nil, spec, arg), Urgency: jobstate.UrgencyDefault, Key: fmt.Sprint(id)}
}

// purges has queues and five jobs, whose ids differ in the last bits of 63.
func (k *keeper) purges() error {
	const a, b, c, d, e jobid.ID = 1<<62 + 1, 1<<62 + 2, 1<<62 + 3, 1<<62 + 4, 1<<62 + 5
	k.cfg.TombstoneCount = jobstate.Some(1)
	lives := [...][]joblife.Input{
		{joblife.EnableQueue{Queue: "batch", Reason: "full"}, joblife.StartQueue{Queue: "batch", Reason: "full"}, joblife.StartQueue{Queue: "debug", Reason: "full"}},
		{joblife.EnableQueue{Queue: "batch", Enable: true}},
		2: nil, // five jobs
		{joblife.Raise{ID: e, Type: "cancel"}, joblife.Raise{ID: c, Type: "cancel"}},
		{joblife.PurgeIDs{IDs: []jobid.ID{e}, Force: true}},
		{joblife.SetUrgency{ID: b, Urgency: 0}, joblife.SetUrgency{ID: d, Urgency: 31}},
		{joblife.PurgeIDs{IDs: []jobid.ID{c}, Force: true}}, // the tombstone of e expires, and the watermark stays
		{joblife.Raise{ID: b, Type: "cancel"}, joblife.Raise{ID: d, Type: "cancel"}},
		{joblife.PurgeIDs{IDs: []jobid.ID{d, b}, Force: true}},
	}
	for id := a; id <= e; id++ {
		lives[2] = append(lives[2], submit(id, "true"))
	}
	for _, inputs := range lives {
		if err := k.live(inputs...); err != nil {
			return err
		}
	}
	if err := k.unlink(); err != nil {
		return err
	}
	return k.unlink(b, c, d, e, 99, a/10, a>>4, a/58) // in each notation of ids, a begins with one of them
}

// live passes inputs to the Manager, and opens the store again.
func (k *keeper) live(inputs ...joblife.Input) error {
	k.now = k.now.Add(time.Second)
	if err := k.step(inputs...); err != nil {
		return err
	}
	return k.reopen()
}

// greatest stores records as large as the Manager takes, with all bytes that a text may have.
func (k *keeper) greatest() error {
	var all strings.Builder
	for c := rune(' '); c <= utf8.MaxRune; c += 1 + c/0x800 {
		if c != '"' && c != '\\' && utf8.ValidRune(c) {
			all.WriteRune(c)
		}
	}
	fill := func(n int) string { return strings.ToValidUTF8(strings.Repeat(all.String(), n/all.Len()+1)[:n], "") }
	for _, input := range []func(n int) joblife.Input{
		func(n int) joblife.Input { return submit(1, fill(n)) },
		func(int) joblife.Input { return joblife.SchedHello{} },
		func(int) joblife.Input { return joblife.SchedReady{} },
		func(int) joblife.Input { // the key scheduling is stored if there is room
			const text = `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"starttime":0,"expiration":0},"scheduling":"%s"}`
			r, err := rset.Parse(fmt.Appendf(nil, text, fill(eventlog.DefaultMaxLine-8<<10)))
			if err != nil {
				panic(err)
			}
			return joblife.SchedResponse{ID: 1, R: r}
		},
		func(n int) joblife.Input {
			return joblife.Post{ID: 1, Name: "debug.great", Context: fmt.Appendf(nil, `{"x":"\u0000\n\"%s"}`, fill(n))}
		},
		func(int) joblife.Input { return joblife.Post{ID: 1, Name: "debug.small"} },
	} {
		err := joblife.ErrLimit
		for n := eventlog.DefaultMaxLine; n > 0 && errors.Is(err, joblife.ErrLimit); n -= 1 << 10 { // as much as it takes
			err = k.m.Step(k.now, input(n))
		}
		if err == nil {
			err = k.step()
		}
		if err == nil {
			_, err = k.half(nil) // the Manager goes on
		}
		if err != nil {
			return err
		}
	}
	return k.reopen()
}

// many purges as many jobs at once as the Manager does, and stores 20,000 records at once.
func (k *keeper) many() error {
	var purged, canceled, rest []joblife.Input
	var ids []jobid.ID
	for id := range jobid.ID(purge.MaxBatch) {
		ids = append(ids, id+1)
		purged, canceled = append(purged, submit(id+1, "true")), append(canceled, joblife.Raise{ID: id + 1, Type: "cancel"})
	}
	for id := range jobid.ID(4000) {
		rest = append(rest, submit(purge.MaxBatch+id+1, "true"))
	}
	for _, inputs := range [][]joblife.Input{purged, canceled, {joblife.PurgeIDs{IDs: ids, Force: true}}, rest} {
		if err := k.live(inputs...); err != nil {
			return err
		}
	}
	return nil
}

// fails has an Append fail: its first records may be there.
func (k *keeper) fails() error {
	if _, ok := k.store.(interface{ Fail() }); !ok {
		return nil
	}
	if err := k.live(submit(1, "true"), submit(2, "true")); err != nil {
		return err
	}
	k.store.(interface{ Fail() }).Fail() // it was opened again
	before := len(k.want)
	if k.step(joblife.SetUrgency{ID: 1, Urgency: 5}, submit(3, "true"), joblife.SetUrgency{ID: 2, Urgency: 6}) == nil {
		return errors.New("on Append: no error, and Fail was called: no user may be told that a record is durable which is not")
	}
	all := k.want
	for n := before; n <= len(all); n++ {
		k.want = all[:n]
		if err := k.reopen(); err == nil {
			return k.live(submit(4, "true"))
		}
	}
	k.want = all[:before]
	return fmt.Errorf("what is there is not what the first records make of it: store them in order, or none; without any of them %w", k.reopen())
}

// storeSite is a Site whose records go to the store too.
type storeSite struct {
	*Site
	k *keeper
}

func (s storeSite) Append(list []joblife.Record) error {
	if err := s.Site.Append(list); err != nil {
		return err
	}
	s.k.fault = s.k.append(list)
	return s.k.fault
}

// world plays random jobs, each life of which begins with what the store has. Then they are purged.
func (k *keeper) world(seed int) error {
	err := rapid.Custom(func(t *rapid.T) error {
		return runEmbedder(t, func(s *Site) (Embedder, error) {
			k.cfg, k.now = s.Config, s.Now
			k.fault = k.reopen()
			return &loop{m: k.m, site: storeSite{s, k}}, k.fault
		})
	}).Example(seed)
	if err = cmp.Or(k.fault, err); err != nil {
		return err
	}
	limits := purge.PurgeAll()
	k.now, limits.Batch = k.m.Now(), 2
	return k.live(joblife.Purge{Limits: limits, Force: true})
}
