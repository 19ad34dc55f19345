package jobid_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/joblife/joblife/jobstate/jobid"
)

func ExampleParse() {
	for _, s := range []string{"ƒuZZybuNNy", "fuZZybuNNy", "0x17e9fb8df16c2e", "job.0017.e9fb.8df1.6c2e"} {
		id, err := jobid.Parse(s)
		fmt.Println(uint64(id), err)
	}
	_, err := jobid.Parse("fuZZybuNNl")
	fmt.Println(err)
	_, err = jobid.Parse("academy-academy-academy--academy-academy-academy")
	fmt.Println(err)
	// Output:
	// 6731191091817518 <nil>
	// 6731191091817518 <nil>
	// 6731191091817518 <nil>
	// 6731191091817518 <nil>
	// jobid: syntax error: offset 9: not a base 58 digit in "fuZZybuNNl"
	// jobid: form not supported: offset 0: an id in words in "academy-academy-academy--academy-academy-academy"
}

func ExampleID_Format() {
	id := jobid.ID(6731191091817518)
	fmt.Println(id)
	for _, f := range []jobid.Format{jobid.FormatF58Plain, jobid.FormatDec, jobid.FormatHex, jobid.FormatDotHex} {
		fmt.Println(id.Format(f))
	}
	fmt.Println(id.KVSPath())
	// Output:
	// ƒuZZybuNNy
	// fuZZybuNNy
	// 6731191091817518
	// 0x17e9fb8df16c2e
	// 0017.e9fb.8df1.6c2e
	// job.0017.e9fb.8df1.6c2e
}

func ExampleID_AppendFormat() {
	line := []byte("id=")
	line = jobid.ID(3363).AppendFormat(line, jobid.FormatF58Plain)
	fmt.Println(string(line))
	// Output: id=fzz
}

func ExampleID_MarshalJSON() {
	b, err := json.Marshal(map[string]jobid.ID{"id": 6731191091817518})
	fmt.Println(string(b), err)
	// Output: {"id":6731191091817518} <nil>
}

func ExampleID_Time() {
	epoch := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	id := jobid.ID(6731191091817518)
	fmt.Println(id.Time(epoch).Format(time.RFC3339Nano))
	// Output:
	// 2024-01-05T15:26:50.253Z
}

func Example() {
	epoch := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	g, err := jobid.NewGenerator(0, epoch)
	if err != nil {
		fmt.Println(err)
		return
	}
	now := epoch.Add(time.Hour)
	for range 2 {
		id, err := g.Next(now)
		fmt.Println(id, id.Format(jobid.FormatDotHex), err)
	}
	watermark := g.Last() // stored durably before any of the two jobs is purged

	// After a restart at the same moment the ids go on where they were.
	g, err = jobid.NewGenerator(0, epoch)
	if err != nil {
		fmt.Println(err)
		return
	}
	g.After(watermark)
	id, err := g.Next(now)
	fmt.Println(id, id.Format(jobid.FormatDotHex), err)

	_, err = g.Next(now.Add(-time.Second))
	fmt.Println(err)
	// Output:
	// ƒUMZ3TXYK 0000.36ee.8000.0000 <nil>
	// ƒUMZ3TXYL 0000.36ee.8000.0001 <nil>
	// ƒUMZ3TXYM 0000.36ee.8000.0002 <nil>
	// jobid: clock went back: generator 0 at 3599000 ms, its last id is of 3600000 ms
}
