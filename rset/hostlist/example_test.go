package hostlist_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/joblife/joblife/rset/hostlist"
)

func Example() {
	l, err := hostlist.Parse("node[08-11],login,node[12-999999]")
	if err != nil {
		fmt.Println(err)
		return
	}
	host, _ := l.Nth(4)
	index, _ := l.Find("node099")
	_, padded := l.Find("node99")
	fmt.Println(l.Len(), host, index, padded)
	// Output: 999993 login 0 true
}

func ExampleParse() {
	for _, text := range []string{"foo[1-3,5]-ib,bar", "[005,4]", "foo1,foo2,foo3", "foo[1-", "foo[1] bar"} {
		l, err := hostlist.Parse(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(l.Len(), l)
	}
	// Output:
	// 5 foo1-ib,foo2-ib,foo3-ib,foo5-ib,bar
	// 2 [005,4]
	// 3 foo[1-3]
	// hostlist: syntax error: offset 6: bracket is not closed in "foo[1-"
	// hostlist: syntax error: offset 6: unexpected byte in "foo[1] bar"
}

func ExampleParser() {
	_, err := hostlist.Parser{MaxHosts: 1024}.Parse("n[0-999999]")
	fmt.Println(errors.Is(err, hostlist.ErrLimit))
	fmt.Println(err)
	// Output:
	// true
	// hostlist: limit exceeded: offset 2: 1000000 hosts, at most 1024 are allowed
}

func ExampleList_Append() {
	l := hostlist.Of("n1", "n2")
	err := l.Append("n3", "n03")
	l.AppendList(hostlist.Of("n04"))
	fmt.Println(l, err)
	fmt.Println(l.Append("n[5-6]"))
	// Output:
	// n[1-3,03-04] <nil>
	// hostlist: syntax error: offset 1: unexpected byte in "n[5-6]"
}

func ExampleList_Uniq() {
	l, _ := hostlist.Parse("n10,n9,n010,n[8-9],login")
	fmt.Println(l.Uniq(), l)
	// Output: 1 login,n[8-10,010]
}

func ExampleList_All() {
	l, _ := hostlist.Parse("n[09-11],login")
	for host := range l.All() {
		fmt.Print(host, " ")
	}
	for r := range l.Ranges() {
		fmt.Print(r.Prefix, " ", r.First, "-", r.Last, " ", r.Width, "; ")
	}
	fmt.Println()
	// Output: n09 n10 n11 login n 9-11 2; login 0-0 0;
}

func ExampleList_MarshalText() {
	l := hostlist.Of("n1", "n2")
	b, _ := json.Marshal(l)
	fmt.Println(string(b))
	// Output: "n[1-2]"
}
