package perilog_test

import (
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// With release-after = "30s", what has been cleaned half a minute after the
// first node goes back together, and each node after that by itself.
func ExampleHousekeeping() {
	r, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-5","children":{"core":"0-47"}}],` +
		`"starttime":0,"expiration":0,"nodelist":["fluke[10-15]"]}}`))
	after := 30 * fsd.Second
	h, err := perilog.NewHousekeeping(1000, perilog.HousekeepingJob{Job: 1, UserID: 5588, R: r, ReleaseAfter: &after},
		perilog.HousekeepingOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = h.Start(1000, perilog.Spec{Command: []string{"imp", "run", "housekeeping"}, Timeout: 600})

	var log []byte
	act := func() { // what an embedder does after every input
		e := h.Take()
		log = append(log, e.Log...) // durable first
		for _, q := range e.Requests {
			fmt.Printf("  %s of %s: %q\n", q.Kind, q.Ranks, q.Reason)
		}
		for _, f := range e.Free {
			fmt.Printf("  free %s (%s), final %t\n", f.R.Ranks(), f.R.Nodelist(), f.Final)
		}
	}
	fmt.Println("1000: start")
	act()
	exit := func(now float64, rank uint32, status int32) {
		fmt.Printf("%g: rank %d exits with %d\n", now, rank, status>>8)
		h.Report(hkSeconds(now), perilog.Report{Kind: perilog.ReportExited, Rank: rank, Status: status})
		act()
	}
	exit(1010, 2, 0)
	exit(1012, 0, 0)
	exit(1020, 1, 1<<8)
	at, _ := h.Deadline()
	fmt.Printf("%v: tick\n", at)
	h.Tick(at)
	act()
	fmt.Println("1041: rank 1 is drained")
	h.Drained(1041, idset.Of(1))
	act()
	exit(1050, 4, 0)

	// A restart: the log tells all there is.
	h, _ = perilog.ReplayHousekeeping(log, perilog.HousekeepingOptions{})
	s := h.Status(1060)
	fmt.Printf("after a restart: allocated %s, free %s, unresolved %s\n", s.Allocated, s.Free, s.Unresolved)
	_ = h.Reattach(1060, perilog.Spec{Timeout: 600})
	exit(1070, 3, 0)
	exit(1080, 5, 0)

	// Output:
	// 1000: start
	//   launch of 0-5: ""
	// 1010: rank 2 exits with 0
	// 1012: rank 0 exits with 0
	// 1020: rank 1 exits with 1
	//   drain of 1: "housekeeping failed for job ƒ2"
	// 1040.0: tick
	//   free 0,2 (fluke[10,12]), final false
	// 1041: rank 1 is drained
	//   free 1 (fluke11), final false
	// 1050: rank 4 exits with 0
	//   free 4 (fluke14), final false
	// after a restart: allocated 3,5, free 0-2,4, unresolved 3,5
	// 1070: rank 3 exits with 0
	//   free 3 (fluke13), final false
	// 1080: rank 5 exits with 0
	//   free 5 (fluke15), final true
}
