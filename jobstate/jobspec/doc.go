// Package jobspec makes and reads jobspecs, which say what a job asks for: version 1 of
// RFC 14 and RFC 25, with the dependencies of RFC 26 and the updates of RFC 21.
//
//	spec, err := jobspec.New(jobspec.Job{
//		Nodes: 4, Cores: 2, Duration: time.Hour, Command: []string{"app"},
//	})
//	text, err := json.Marshal(spec)
//
//	spec, err = jobspec.Parse(text) // jobspec: resources[0].count: offset 40: must be …
//	c := spec.Counts()
//	fmt.Println(spec.Name(), spec.Duration(), c.Nodes, c.Tasks)
//
// A scheduler gets the resources from [Spec.Shape], or as a tree from [Spec.Vertices]. A
// listing gets the sizes from [Spec.Counts], and after the event alloc from [Spec.CountsOn].
// [Spec.UpdateAll] applies events jobspec-update.
//
// A vertex is a resource in the tree that a job asks for; tasks run in the vertex slot. A
// [Count] says how many of a vertex are acceptable in each one of its parent. A [Quantity]
// may not be known yet, such as the cores of a job that asks for whole nodes.
//
// # Ownership, cost and limits
//
// Specs and Counts are immutable and copy what they need; any number of goroutines may
// use one. Parse checks the text in one pass, and reads a value once more for each level
// above it. Update and MarshalJSON decode the whole text and take several times as long.
// A jobspec has at most 16 MiB, 2048 levels of JSON, 1024 vertices in 32 levels, and 1024
// tasks; a type or a label has at most 256 bytes, and a count is at most [MaxCount].
//
// # Differences from the RFCs
//
// Parse accepts all of RFC 14 with the duration that RFC 25 requires, as Flux does; a count that
// is a string ("2+", "2-8:2:*") or, of a gpu and the like, 0; a range without operator or
// operand, which default to + and 1; and, but for slots, an empty list "with", as the RFC's
// schema does. Unknown keys are kept at the top level, in attributes.system and attributes.user,
// in dependencies, in a task's attributes and as a task's count. Elsewhere they are refused.
package jobspec
