// Package jobspec makes and reads jobspecs, which say what a job asks for. It
// implements version 1 of RFC 14 and RFC 25, with the dependencies of RFC 26 and the
// updates of RFC 21.
//
//	spec, err := jobspec.New(jobspec.Job{
//		Nodes: 4, Cores: 2, Duration: time.Hour, Command: []string{"app"},
//	})
//	text, err := json.Marshal(spec)
//
//	spec, err = jobspec.Parse(text)
//	if err != nil {
//		return err // jobspec: resources[0].count: offset 40: must be …
//	}
//	c := spec.Counts()
//	fmt.Println(spec.Name(), spec.Duration(), c.Nodes, c.Tasks)
//
// A scheduler gets the resources from [Spec.Shape], or as a tree from
// [Spec.Vertices]. A listing gets the sizes from [Spec.Counts] before the event
// alloc and from [Spec.CountsOn] after it. [Spec.Apply] applies an event
// jobspec-update; [Spec.Original] is the view without updates.
//
// # Vocabulary
//
// A vertex is a resource in the tree that a job asks for. A slot is the vertex in
// which tasks run. A [Count] says how many of a vertex are acceptable in each one
// of its parent: one number, a range, or a set. A [Quantity] is a number that may
// not be known yet: the cores of a job that asks for whole nodes are not known
// before it has them.
//
// # Ownership
//
// Specs and Counts are immutable; any number of goroutines may use one. A Spec
// copies its text. The results of its methods belong to the caller. Errors keep
// no input.
//
// # Cost and limits
//
// Parse checks the text in one pass, and reads a value once more for each level above
// it. Update and MarshalJSON decode the whole text and take several times as long. A
// jobspec has at most 16 MiB, 2048 levels of JSON, 1024 vertices, 32 levels of
// vertices and 1024 tasks; a count is at most [MaxCount]. Beyond that the error is
// [ErrLimit].
//
// # Differences from the RFCs
//
// Parse accepts all of RFC 14 with the duration that RFC 25 requires, as instances of
// Flux do. It also accepts a count that is a string ("2+", "2-8:2:*", sets), and a
// range without operator and operand, which default to + and 1.
//
// Unknown keys are kept at the top level, in attributes.system and
// attributes.user, in dependencies, in a task's attributes and as a task's count.
// Elsewhere they are refused.
//
// RFC 14: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_14.html
// RFC 25: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_25.html
package jobspec
