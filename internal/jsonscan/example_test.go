package jsonscan_test

import (
	"fmt"

	"github.com/joblife/joblife/internal/jsonscan"
)

func ExampleCursor() {
	c := jsonscan.Object([]byte(`{"type":"cancel","severity":0,"note":"by the user"}`))
	for c.Next() {
		switch string(c.Key()) {
		case "severity":
			severity, ok := jsonscan.Int64(c.Raw())
			fmt.Println("severity", severity, ok)
		case "note":
			note, ok := jsonscan.String(c.Raw())
			fmt.Println("note", note, ok)
		}
	}
	fmt.Println(c.Err())
	// Output:
	// severity 0 true
	// note by the user true
	// <nil>
}

func ExampleCheck() {
	fmt.Println(jsonscan.Check([]byte(`{"a":[1,2]}`), jsonscan.Limits{}))
	fmt.Println(jsonscan.Check([]byte(`{"a":1,"\u0061":2}`), jsonscan.Limits{}))
	// Output:
	// <nil>
	// jsonscan: offset 7: duplicate key "a"
}

func ExampleAppendFloat() {
	fmt.Printf("%s %s %s\n", jsonscan.AppendFloat(nil, 42), jsonscan.AppendFloat(nil, 0.1), jsonscan.AppendFloat(nil, 1e22))
	// Output: 42.0 0.10000000000000001 1e22
}
