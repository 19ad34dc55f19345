package purge_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// first is the first id of the examples.
const first jobid.ID = 6731191091817518

// ended returns n jobs, one of which ended every second from 1000 on.
func ended(n int) purge.Snapshot {
	var ev purge.Snapshot
	for i := range n {
		ev.Jobs = append(ev.Jobs, jobstate.Summary{
			ID: first + jobid.ID(i), Inactive: 1000 + eventlog.Timestamp(i), Result: jobstate.ResultCompleted, Ran: true,
		})
	}
	return ev
}

// must returns what comes without an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A store keeps the logs of jobs.
type store map[jobid.ID]string

func (store) Prepare(context.Context, purge.Plan) error { return nil } // durably, in a real store

func (s store) Unlink(_ context.Context, ids []jobid.ID) (map[jobid.ID]error, error) {
	for _, id := range ids {
		delete(s, id)
	}
	return nil, nil
}

func Example() {
	x := must(purge.Recover(purge.Config{}, ended(10)))
	limits := purge.Limits{MaxCount: jobstate.Some(8)}
	dry := must(x.Plan(1010, limits))
	fmt.Println("would purge", dry.IDs())

	must(x.Claim(1010, limits))
	p := must(purge.CarryOut(context.Background(), x, make(store)))
	fmt.Println(len(p.Jobs), "jobs went,", x.Len(), "stay")
	// Output:
	// would purge [ƒuZZybuNNy ƒuZZybuNNz]
	// 2 jobs went, 8 stay
}

func ExampleIndex_Plan() {
	x := must(purge.Recover(purge.Config{}, ended(5)))
	must(x.Pin(first+1, purge.Pin{Kind: purge.PinHousekeeping, By: "rank 17"}))
	p := must(x.Plan(1010, purge.Limits{MaxAge: jobstate.Some(9 * time.Second), MaxCount: jobstate.Some(3), Batch: 1}))
	for _, c := range p.Jobs {
		fmt.Println(c.ID, "goes by", c.Reason, c.Reason&purge.ReasonAge != 0)
	}
	fmt.Println("more:", p.More)
	fmt.Println("pinned by", x.Pins(first+1))
	_, err := x.PlanIDs(first + 1)
	fmt.Println(errors.Is(err, purge.ErrPinned), err)
	p, _ = x.Plan(1010, purge.PurgeAll())
	for _, k := range p.Pinned {
		fmt.Println(k.ID, "stays for", k.Pins)
	}
	// Output:
	// ƒuZZybuNNy goes by age,count true
	// more: true
	// pinned by [housekeeping "rank 17"]
	// true purge: ƒuZZybuNNz: job is pinned by housekeeping "rank 17"
	// ƒuZZybuNNz stays for [housekeeping "rank 17"]
}

// A caller whose store does not block does the steps of CarryOut.
func ExampleIndex_Unlinked() {
	x := must(purge.Recover(purge.Config{}, ended(3)))
	p := must(x.Claim(1010, purge.Limits{MaxCount: jobstate.Some(1)}))
	fmt.Printf("store %s\n", purge.AppendWatermark(nil, p.Watermark))
	for _, j := range p.Tombstones {
		fmt.Println("store", j)
	}
	fmt.Println("remove", p.IDs())
	_, _, done := x.Unlinked(p.IDs()[:1], nil) // the store says what it has removed
	fmt.Println(done)
	_, stay, done := x.Unlinked(nil, map[jobid.ID]error{first + 1: errors.New("in use")})
	fmt.Println(done, stay)
	s := x.Stats()
	fmt.Println(s.Purged.Completed, "purged,", s.Resident.Completed, "stay,", s.Leaving, "leaving,", s.Stuck, "stuck,", s.Resident.Unknown, "without a result")
	// Output:
	// store watermark 0017e9fb8df16c2f
	// store 6731191091817518 0 1000.0 completed ran
	// store 6731191091817519 0 1001.0 completed ran
	// remove [ƒuZZybuNNy ƒuZZybuNNz]
	// false
	// true map[ƒuZZybuNNz:in use]
	// 1 purged, 2 stay, 0 leaving, 1 stuck, 0 without a result
}

func ExampleIndex_PlanIDs() {
	x := must(purge.Recover(purge.Config{
		Active: func(id jobid.ID) (jobstate.State, bool) { return jobstate.StateRun, id == first+3 },
	}, ended(3)))
	_, err := x.PlanIDs(first, first+3)
	fmt.Println(err)
	_, err = x.PlanIDs(first + 4)
	fmt.Println(err, errors.Is(err, purge.ErrUnknown))
	// Output:
	// purge: ƒuZZybuNP2: job is active: RUN
	// purge: ƒuZZybuNP3: no such job true
}

func ExampleIndex_Ended() {
	x := must(purge.Recover(purge.Config{}, purge.Snapshot{
		Tombstones: []jobstate.Summary{{ID: first, Inactive: 1000, Result: jobstate.ResultCanceled}},
	}))
	if j, ok := x.Ended(first); ok {
		fmt.Println(j.Result, j.Ran)
	}
	_, err := x.PlanIDs(first)
	fmt.Println(err)
	// Output:
	// CANCELED false
	// purge: ƒuZZybuNNy: job was purged: canceled
}

func ExampleIndex_AcceptClock() {
	x := must(purge.Recover(purge.Config{}, ended(3)))
	const monthLater = 1000 + 30*86400
	_, err := x.Plan(monthLater, purge.PurgeAll())
	fmt.Println(err)
	if errors.Is(err, purge.ErrClock) { // and somebody has looked at the clock
		err = x.AcceptClock(monthLater)
	}
	if err != nil {
		panic(err)
	}
	p, err := x.Plan(monthLater, purge.PurgeAll())
	fmt.Println(len(p.Jobs), err)
	// Output:
	// purge: clock stepped: 1970-01-31T00:16:40Z is too far after 1970-01-01T00:16:42Z; accept the clock if it is right
	// 3 <nil>
}

func ExampleParseWatermark() {
	id, err := purge.ParseWatermark([]byte("watermark 0017e9fb8df16c2e"))
	fmt.Println(id, err)
	_, err = purge.ParseWatermark([]byte("watermark 0017e9fb8df"))
	fmt.Println(err)
	// Output:
	// ƒuZZybuNNy <nil>
	// purge: offset 10: "watermark 0017e9fb8df": malformed record: not 16 digits
}
