package joblife

// A mutation is a deliberate fault, to show that the tests find such faults. Only a
// build with the tag joblife_mutations has them.
type mutation uint8

const (
	mutationSkippedFinal mutation = 1 + iota
	mutationEarlyFree
	mutationLostWatermark
	mutationOldAttempt
	mutationForgottenDrain
	mutationKeptAlloc
	mutationNoTombstone
	mutationDroppedRecord
	mutationIDTwice
	mutationEarlyStart
	mutations = iota
)
