// Package conformance says, as tests, which clauses of the Flux RFCs joblife keeps, and what
// shows it. The files in testdata have a row for each clause; CONFORMANCE.md is made of them.
//
// A file begins with "# RFC 22/Idset String Representation". Each other line is a comment that
// begins with #, or a row of four fields with " | " between them:
//
//	section title | digest | the clause in our words | proof
//
// A clause is one MUST, MUST NOT, SHALL, SHALL NOT or REQUIRED, and the rows are in the order
// of the RFC. The digest is the first 8 hexadecimal digits of the SHA-256 of the clause's
// paragraph or list item, with single spaces, then "#" and the number of the keyword in it,
// from 1. So a change of the RFC shows, and its text is not in this repository. A proof is one of
//
//	test idset.TestX, jobstate/fsd.FuzzY, ..TestOfTheRoot
//	embedder perilog/doc.go: "words of a comment of that file, or of a Markdown page"
//	none: the reason, in which each TestX is one too
//
// The folder that JOBLIFE_RFC names has the texts, as spec_22.rst; without it, the rows are
// not compared with them. To write the rows of an RFC, begin with the first line alone: the
// test that fails prints what is missing.
package conformance
