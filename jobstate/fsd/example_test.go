package fsd_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/joblife/joblife/jobstate/fsd"
)

// A limit is read from a configuration, used as a time.Duration and shown.
func Example() {
	for _, text := range []string{"90s", "1.5h", "2d", "infinity", "1h30m"} {
		limit, err := fsd.ParseDuration(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(limit == fsd.Forever, fsd.FormatDuration(limit), fsd.FormatDigits(limit, 1))
	}
	// Output:
	// false 1.5m 2m
	// false 1.5h 2h
	// false 2d 2d
	// true infinity infinity
	// fsd: syntax error: offset 1: neither a digit nor a unit at the end in "1h30m"
}

func ExampleParse() {
	for _, s := range []string{"30", "500ms", "1.5h", "2d", "infinity"} {
		d, err := fsd.Parse(s)
		fmt.Println(d.Seconds(), err)
	}
	_, err := fsd.Parse("1h30m")
	fmt.Println(err)
	_, err = fsd.Parse("-5s")
	fmt.Println(errors.Is(err, fsd.ErrRange))
	// Output:
	// 30 <nil>
	// 0.5 <nil>
	// 5400 <nil>
	// 172800 <nil>
	// +Inf <nil>
	// fsd: syntax error: offset 1: neither a digit nor a unit at the end in "1h30m"
	// true
}

func ExampleDuration_String() {
	// What six digits tell is as Flux prints it; what needs more is in seconds.
	fmt.Println(90*fsd.Minute, 62*fsd.Second, fsd.Day, 2*fsd.Millisecond, fsd.Infinity())
	// Output: 1.5h 62s 1d 2ms infinity
}

func ExampleDuration_Format() {
	d := 62 * fsd.Second
	fmt.Println(d.Format(6), d.Format(2))
	// Output: 1.03333m 1m
}

func ExampleDuration_AppendFormat() {
	line := []byte("up ")
	line = (26 * fsd.Hour).AppendFormat(line, 2)
	fmt.Println(string(line))
	// Output: up 1.1d
}

func ExampleFromSeconds() {
	d, err := fsd.FromSeconds(5400) // a jobspec's duration is a number
	fmt.Println(d, err)
	// Output: 1.5h <nil>
}

func ExampleDuration_UnmarshalText() {
	var config struct {
		InactiveAgeLimit fsd.Duration `json:"inactive-age-limit"`
	}
	err := json.Unmarshal([]byte(`{"inactive-age-limit": "7d"}`), &config)
	fmt.Println(config.InactiveAgeLimit.Seconds(), err)
	// Output: 604800 <nil>
}
