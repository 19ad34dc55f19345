// Package jobspec reads what a job asks for: jobspecs of version 1, RFC 14 and
// RFC 25, with the dependencies of RFC 26 and the updates of RFC 21.
//
// # What it is
//
// [Parse] reads a jobspec from JSON and checks it; a [Spec] then answers what a
// scheduler or a job listing wants to know: the resources as a tree or as the
// [Shape] of RFC 25, the sizes that follow from them ([Spec.Counts]), time
// limit, name, queue, dependencies. [Spec.Update] and [Spec.Apply] set values
// by dotted path, as the event jobspec-update does, and [Spec.Original] is the
// view without them.
//
// RFC 14: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_14.html
// RFC 25: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_25.html
//
// Parse accepts all that RFC 14 allows, in version 1, where RFC 25 requires
// attributes.system.duration: instances of Flux run such jobs. [Spec.CheckV1]
// is RFC 25 by the letter. Unknown keys are kept at the top level, in
// attributes.system and attributes.user, in dependencies, in a task's
// attributes and as a task's count; a resource vertex, a range, a task and
// attributes may have no others than RFC 14's.
//
// What this package lets in beyond RFC 14's schema, as Flux does: a count that
// is a text ("2+", "2-8:2:*", sets), and a range without operator and operand,
// which are + and 1 then.
//
// # Vocabulary
//
// A vertex is a resource in the tree that a job asks for; a slot is the vertex
// that tasks run in. A [Count] is how many of a vertex are acceptable for each
// one of its parent: one number, a range, a set. A [Quantity] is a number that
// may not be known yet.
//
// A job is exclusive where it gets whole nodes: what is in them is not known
// before it has them. Numbers of a listing come from [Spec.Counts] before the
// event alloc and from [Spec.CountsOn] after it; a resource set that no alloc
// event speaks of does not count.
//
// # Invariants
//
//   - A Spec never changes. What Parse and Update return satisfies RFC 14; every
//     number that [Spec.Counts] knows is at most [MaxQuantity].
//   - After an error of Update or Apply there is no Spec but the old one (I6).
//   - MarshalJSON is deterministic (I7), is accepted by Parse, and the Spec that
//     Parse makes of it prints the same.
//   - A Count that ParseCount or UnmarshalJSON made prints text and JSON that
//     read as an equal Count.
//
// # Concurrency and ownership
//
// Specs and Counts are immutable: any number of goroutines may use one. A Spec
// copies its text; what its methods return is the caller's. Errors refer to no
// input.
//
// # Cost and limits
//
// Parse is one pass that checks the text and one more over each value that it
// reads for each level that the value is nested: the environment is passed
// over three times. A Spec keeps its text and some 170
// bytes a vertex; the environment, and all else that has no method of its
// own, stays text. Update and MarshalJSON decode the text whole and cost
// several times as much. [Limits] bounds bytes, depth, vertices and tasks;
// vertices nest at most 32 deep, a count is at most [MaxCount]. Beyond is
// [ErrLimit].
package jobspec
