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

func ExampleParse() {
	d, err := fsd.Parse("1.5h")
	fmt.Println(time.Duration(d), err)
	// Output: 1h30m0s <nil>
}
