package main

import (
	"io"
	"strings"
	"testing"

	"github.com/joblife/joblife/examples/internal/errpage"
)

func TestErrorsAreLessons(t *testing.T) {
	errpage.Page{
		Name: "partialrelease", Sources: []string{"."},
		Run: func(_ io.Reader, args ...string) (status int, stdout, stderr string) {
			return command(strings.Join(args, " "))
		},
		Elsewhere: map[string][]string{"a fault of the library": {"nothing happens any more, and the job holds nodes"}},
		Cases: []errpage.Case{
			{When: "a flag that is not there", Args: "-node 5", Status: 2},
			{When: "a file", Args: "file", Status: 2},
			{When: "no nodes", Args: "-nodes 0", Status: 2},
			{When: "too many nodes", Args: "-nodes 16385", Status: 2},
			{When: "no number", Args: "-nodes many", Status: 2},
			{When: "more slow nodes than nodes", Args: "-nodes 2 -stragglers 3", Status: 2},
			{When: "a negative number", Args: "-hang -1", Status: 2},
			{When: "a negative timeout", Args: "-timeout -1", Status: 2},
			{When: "a timeout of weeks", Args: "-timeout 11d", Status: 2},
			{When: "no duration", Args: "-crash soon", Status: 2},
			{When: "nodes that would hang for ever", Args: "-hang 1 -timeout 0", Status: 2},
			{When: "a flag without its value", Args: "-housekeeping -release-after", Status: 2},
		},
	}.Check(t, *update)
}
