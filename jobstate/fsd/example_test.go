package fsd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/joblife/joblife/jobstate/fsd"
)

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
	// fsd: offset 1: neither a digit nor a unit at the end in "1h30m"
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

func ExampleDuration_Std() {
	d, err := (1.5 * fsd.Minute).Std()
	fmt.Println(d, err)
	// The error of what is too long comes with the longest that there is.
	d, err = fsd.Infinity().Std()
	fmt.Println(d, err)
	// Output:
	// 1m30s <nil>
	// 2562047h47m16.854775807s fsd: infinity: out of range: longer than a time.Duration can be
}

func ExampleFromStd() {
	d, err := fsd.FromStd(36 * time.Hour)
	fmt.Println(d, err)
	_, err = fsd.FromStd(-time.Second)
	fmt.Println(err)
	// Output:
	// 1.5d <nil>
	// fsd: Duration(-1): out of range: negative
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
