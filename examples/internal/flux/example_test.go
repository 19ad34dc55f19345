package flux_test

import (
	"context"
	"fmt"
	"log"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
)

// A service answers a request, and refuses another.
func Example() {
	q := flux.NewRequest("job-manager.getinfo", nil)
	q.UserID, q.Rolemask, q.Matchtag = 1000, flux.RoleUser, 7
	q.Route = []string{"client", "module"}
	for _, r := range []flux.Message{q.Respond(flux.Text(`{"max_jobid":0}`)), q.RespondError(errno.Perm, "owner only")} {
		b, err := r.AppendBinary(nil)
		if err != nil {
			log.Fatal(err)
		}
		r, err := flux.Parse(b)
		fmt.Println(r.Type, r.Matchtag, r.Route, len(b), err, r.Err())
	}
	// Output:
	// response 7 [client module] 73 <nil> <nil>
	// response 7 [client module] 68 <nil> flux: job-manager.getinfo: owner only (errno 1)
}

// A program asks the broker of FLUX_URI.
func ExampleDial() {
	ctx := context.Background()
	c, err := flux.Dial(ctx, flux.Config{})
	if err != nil {
		log.Fatal(err) // it says what to mend
	}
	defer c.Close()
	rank, err := c.Attr(ctx, "rank")
	fmt.Println(rank, err)
}
