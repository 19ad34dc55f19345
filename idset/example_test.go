package idset_test

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/idset"
)

func Example() {
	held := idset.Range(0, 15)
	for _, done := range []string{"3", "8-11", "12-15"} {
		freed, err := idset.Parse(done)
		if err != nil {
			fmt.Println(err)
			return
		}
		held.SubtractWith(freed)
		fmt.Printf("freed %v, %d still held: %v\n", freed, held.Len(), held)
	}
	// Output:
	// freed 3, 15 still held: 0-2,4-15
	// freed 8-11, 11 still held: 0-2,4-7,12-15
	// freed 12-15, 7 still held: 0-2,4-7
}

func ExampleParse() {
	s, err := idset.Parse("[1-3,5,6,42]")
	fmt.Println(s, err)
	for _, text := range []string{"1,,2", "3,1", "007", "4294967296"} {
		_, err := idset.Parse(text)
		fmt.Println(err)
	}
	// Output:
	// 1-3,5-6,42 <nil>
	// idset: syntax error: offset 2: empty element in ""
	// idset: syntax error: offset 2: not above the ids before it in "1"
	// idset: syntax error: offset 0: leading zero in "007"
	// idset: id out of range: offset 0: "4294967296" is above 2147483647
}

func ExampleParseLimit() {
	const nodes = 64
	_, err := idset.ParseLimit("0-64", nodes-1)
	fmt.Println(err, errors.Is(err, idset.ErrRange))
	// Output:
	// idset: id out of range: offset 2: "64" is above 63 true
}

func ExampleOf() {
	fmt.Println(idset.Of(7, 0, 2, 1, 7))
	// Output:
	// 0-2,7
}

func ExampleSet_InsertRange() {
	s := idset.Of(5)
	fmt.Println(s.InsertRange(0, 3), s)
	fmt.Println(s.InsertRange(1, 2), s)
	fmt.Println(s.InsertRange(4, 1000000000), s)
	// Output:
	// true 0-3,5
	// false 0-3,5
	// true 0-1000000000
}

func ExampleSet_All() {
	s := idset.Of(1, 2, 3, 4, 5)
	for id := range s.All() {
		if id%2 == 1 {
			s.Remove(id + 1) // seen at once
		}
		fmt.Print(id, " ")
	}
	fmt.Println(s)
	// Output:
	// 1 3 5 1,3,5
}

func ExampleSet_Ranges() {
	for first, last := range idset.Of(0, 1, 2, 7).Ranges() {
		fmt.Println(first, last)
	}
	// Output:
	// 0 2
	// 7 7
}

func ExampleSet_Next() {
	s := idset.Of(3, 9)
	for id, ok := s.Min(); ok; id, ok = s.Next(id) {
		fmt.Println(id)
	}
	// Output:
	// 3
	// 9
}

func ExampleSet_Slice() {
	s := idset.Of(0, 1, 2, 7)
	fmt.Println(s.Slice(10))
	fmt.Println(s.Slice(3))
	// Output:
	// [0 1 2 7] <nil>
	// [] idset: limit exceeded: 4 ids, at most 3 are allowed
}

func ExampleSet_AppendBrackets() {
	fmt.Printf("%s %s\n", idset.Of(0, 1, 2, 7).AppendBrackets(nil), idset.Of(7).AppendBrackets(nil))
	// Output: [0-2,7] 7
}

func ExampleUnion() {
	a, b := idset.Of(0, 1, 2), idset.Of(2, 3)
	fmt.Println(idset.Union(a, b), idset.Intersect(a, b), idset.Difference(a, b))
	fmt.Println(a, b)
	// Output:
	// 0-3 2 0-1
	// 0-2 2-3
}

func ExampleSet_ContainsAll() {
	a := idset.Of(0, 1, 2, 3)
	fmt.Println(a.ContainsAll(idset.Of(1, 2)), a.ContainsAll(idset.Of(3, 4)), a.Intersects(idset.Of(3, 4)))
	// Output:
	// true false true
}
