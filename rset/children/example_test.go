package children_test

import (
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/children"
)

func Example() {
	node := children.Of([]children.Kind{{Name: "core", IDs: idset.Range(0, 7), N: 8}, {Name: "gpu", IDs: idset.Of(0), N: 1}})
	job := children.Of([]children.Kind{{Name: "core", IDs: idset.Range(0, 3), N: 4}})
	free := node.Subtract(job)
	fmt.Println(free.Len("core"), free.Len("gpu"), free.Intersects(job))
	for _, k := range free.Kinds() {
		fmt.Println(k.Name, k.IDs)
	}
	// Output:
	// 4 1 false
	// core 4-7
	// gpu 0
}
