package jsonscan_test

import (
	"fmt"

	"github.com/joblife/joblife/internal/jsonscan"
)

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
