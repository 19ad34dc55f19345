// Package jobspec makes and reads what a job asks for: jobspecs of version 1, as
// RFC 14 and RFC 25 define them, with the dependencies of RFC 26 and the updates
// of RFC 21.
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
// A scheduler asks a [Spec] for the resources, as [Spec.Shape] or as a tree
// ([Spec.Vertices]). A listing asks for sizes, with [Spec.Counts] before the event
// alloc and with [Spec.CountsOn] after it. [Spec.Apply] folds an event
// jobspec-update; [Spec.Original] is the view without updates.
//
// # Vocabulary
//
// A vertex is a resource in the tree that a job asks for. A slot is the vertex
// that tasks run in. A [Count] is how many of a vertex are acceptable for each one
// of its parent: one number, a range, a set. A [Quantity] is a number that may not
// be known yet: a job that gets whole nodes does not know its cores before it has
// them.
//
// # Ownership
//
// Specs and Counts are immutable; any number of goroutines may use one. A Spec
// copies its text. What its methods return belongs to the caller. Errors refer to
// no input. After an error of Update or Apply the old Spec stands (I6).
//
// # Cost and limits
//
// Parse passes over the text once to check it, and over each value that it reads
// once more for each level above it. Update and MarshalJSON decode the whole text
// and cost several times as much. [Limits] bounds bytes, depth, vertices and
// tasks; vertices nest at most 32 deep, a count is at most [MaxCount]. Beyond is
// [ErrLimit].
//
// # Differences from the RFCs
//
// Parse accepts all of RFC 14, if attributes.system.duration is there as RFC 25
// requires: instances of Flux run such jobs. As Flux does, it also accepts a count
// that is a text ("2+", "2-8:2:*", sets), and a range without operator and
// operand, which are + and 1.
//
// Unknown keys are kept at the top level, in attributes.system and
// attributes.user, in dependencies, in a task's attributes and as a task's count.
// Elsewhere they are refused.
//
// RFC 14: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_14.html
// RFC 25: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_25.html
package jobspec
