package purge_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// ended returns jobs 1 to n, one of which ended every second from 1000 on.
func ended(n int) purge.Evidence {
	var ev purge.Evidence
	for i := range n {
		ev.Jobs = append(ev.Jobs, purge.Job{
			ID: jobid.ID(i + 1), Inactive: 1000 + eventlog.Timestamp(i), Result: purge.Completed, Ran: true,
		})
	}
	return ev
}

func Example() {
	x, err := purge.Recover(purge.Config{
		Purged: func(n purge.Notice) { fmt.Println(len(n.Jobs), "jobs went") },
	}, ended(10))
	if err != nil {
		panic(err)
	}
	limits := purge.Limits{MaxCount: purge.To(8)}
	dry, err := x.Plan(1010, limits)
	if err != nil {
		panic(err)
	}
	fmt.Println("would purge", dry.IDs())

	r, err := purge.NewRunner(x, newMemory(), limits)
	if err != nil {
		panic(err)
	}
	if _, err := r.Tick(context.Background(), 1010); err != nil {
		panic(err)
	}
	fmt.Println(x.Len(), "jobs stay")
	// Output:
	// would purge [ƒ2 ƒ3]
	// 2 jobs went
	// 8 jobs stay
}

func ExampleIndex_Plan() {
	x, err := purge.Recover(purge.Config{}, ended(5))
	if err != nil {
		panic(err)
	}
	if _, err := x.Pin(2, purge.Pin{Kind: purge.Housekeeping, By: "rank 17"}); err != nil {
		panic(err)
	}
	p, err := x.Plan(1010, purge.Limits{MaxAge: purge.To(9 * time.Second), MaxCount: purge.To(3), Batch: 1})
	if err != nil {
		panic(err)
	}
	for _, c := range p.Jobs {
		fmt.Println(c.ID, "goes by", c.Why)
	}
	fmt.Println("more:", p.More)
	p, _ = x.Plan(1010, purge.PurgeAll())
	for _, k := range p.Pinned {
		fmt.Println(k.ID, "stays for", k.Pins)
	}
	// Output:
	// ƒ2 goes by age,count
	// more: true
	// ƒ3 stays for [housekeeping "rank 17"]
}

// Who stores records in an own way does the steps of a Runner.
func ExampleIndex_Claim() {
	x, err := purge.Recover(purge.Config{}, ended(3))
	if err != nil {
		panic(err)
	}
	p, err := x.Plan(1010, purge.Limits{MaxCount: purge.To(1)})
	if err != nil {
		panic(err)
	}
	if p, err = x.Claim(p); err != nil {
		panic(err)
	}
	if p.NeedsWatermark {
		fmt.Printf("store %s\n", purge.AppendWatermark(nil, p.Watermark))
	}
	for _, j := range p.Tombstones {
		fmt.Println("store", j)
	}
	fmt.Println("remove", p.IDs())
	if failed := false; failed {
		err = x.Abort(p)
	} else {
		err = x.Commit(p)
	}
	fmt.Println(x.Stats().Purged.Completed, err)
	// Output:
	// store watermark 0000000000000003
	// store 1 1000.0 completed ran
	// store 2 1001.0 completed ran
	// remove [ƒ2 ƒ3]
	// 2 <nil>
}

func ExampleIndex_PlanIDs() {
	x, err := purge.Recover(purge.Config{
		Active: func(id jobid.ID) (string, bool) { return "RUN", id == 7 },
	}, ended(3))
	if err != nil {
		panic(err)
	}
	_, err = x.PlanIDs(1010, 2, 7)
	fmt.Println(err)
	_, err = x.PlanIDs(1010, 9)
	fmt.Println(err, errors.Is(err, purge.ErrUnknown))
	// Output:
	// purge: ƒ8: job is active: "RUN"
	// purge: ƒA: no such job true
}

func ExampleIndex_Ended() {
	x, err := purge.Recover(purge.Config{}, purge.Evidence{
		Tombstones: []purge.Job{{ID: 5, Inactive: 1000, Result: purge.Canceled}},
	})
	if err != nil {
		panic(err)
	}
	if j, ok := x.Ended(5); ok {
		fmt.Println(j.Satisfies(purge.AfterAny), j.Satisfies(purge.AfterNotOK))
	}
	_, err = x.Lookup(5)
	fmt.Println(err)
	// Output:
	// true false
	// purge: ƒ6: job was purged: canceled
}

func ExampleIndex_AcceptClock() {
	x, err := purge.Recover(purge.Config{}, ended(3))
	if err != nil {
		panic(err)
	}
	const weekLater = 1000 + 7*86400
	_, err = x.Plan(weekLater, purge.PurgeAll())
	fmt.Println(err)
	if err := x.AcceptClock(weekLater); err != nil {
		panic(err)
	}
	p, err := x.Plan(weekLater, purge.PurgeAll())
	fmt.Println(len(p.Jobs), err)
	// Output:
	// purge: clock stepped: 605800.0 is too far after 1002.0
	// 3 <nil>
}

func ExampleParseLimits() {
	l, err := purge.ParseLimits(map[string]any{"inactive-age-limit": "7d", "inactive-num-limit": 1000})
	fmt.Println(l.MaxAge, l.MaxCount, l.MinAge, err)
	_, err = purge.ParseLimits(map[string]any{"inactive-num-limit": -42})
	fmt.Println(err)
	// Output:
	// 168h0m0s 1000 unset <nil>
	// purge: inactive-num-limit: must be 0 or more, and less than 2^31
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
