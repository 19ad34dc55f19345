package jsonobj_test

import (
	"fmt"

	"github.com/joblife/joblife/internal/jsonobj"
)

func ExampleCheck() {
	fmt.Println(jsonobj.Check([]byte(`{"a":[1,2]}`), 0))
	fmt.Println(jsonobj.Check([]byte(`{"a":1,"\u0061":2}`), 0))
	// Output:
	// <nil>
	// offset 7: duplicate key "a"
}

func ExampleAppendFloat() {
	fmt.Printf("%s %s %s\n", jsonobj.AppendFloat(nil, 42), jsonobj.AppendFloat(nil, 0.1), jsonobj.AppendFloat(nil, 1e22))
	// Output: 42.0 0.10000000000000001 1e22
}
