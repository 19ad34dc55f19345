package fsd_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/joblife/joblife/jobstate/fsd"
)

// A limit is read from a configuration, used as a time.Duration and shown.
func Example() {
	var config struct {
		Limit fsd.Duration `json:"limit"`
	}
	for _, text := range []string{"90s", "1.5h", "2d", "infinity", "1h30m"} {
		if err := json.Unmarshal(fmt.Appendf(nil, `{"limit": %q}`, text), &config); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(config.Limit == fsd.Forever, time.Duration(config.Limit) > time.Hour, config.Limit, config.Limit.Format(1))
	}
	// Output:
	// false false 1.5m 2m
	// false true 1.5h 2h
	// false true 2d 2d
	// true true infinity infinity
	// fsd: syntax error: offset 1: neither a digit nor a unit at the end in "1h30m"
}

func ExampleParse() {
	for _, s := range []string{"30", "500ms", "1.5h", "2d", "infinity"} {
		d, err := fsd.Parse(s)
		fmt.Println(time.Duration(d), err)
	}
	_, err := fsd.Parse("1h30m")
	fmt.Println(err)
	_, err = fsd.Parse("-5s")
	fmt.Println(err)
	// Output:
	// 30s <nil>
	// 500ms <nil>
	// 1h30m0s <nil>
	// 48h0m0s <nil>
	// 2562047h47m16.854775807s <nil>
	// fsd: syntax error: offset 1: neither a digit nor a unit at the end in "1h30m"
	// fsd: out of range: offset 0: a negative number in "-5s"
}

func ExampleDuration_String() {
	// What six digits tell is as Flux prints it; what needs more is in seconds.
	fmt.Println(fsd.Duration(90*time.Minute), fsd.Duration(62*time.Second), fsd.Duration(2*time.Millisecond), fsd.Forever)
	// Output: 1.5h 62s 2ms infinity
}

func ExampleDuration_Format() {
	d := fsd.Duration(62 * time.Second)
	fmt.Println(d.Format(6), d.Format(2))
	// Output: 1.03333m 1m
}
