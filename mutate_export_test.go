//go:build joblife_mutations

package joblife

// Mutations is how many deliberate faults there are; Mutate makes one of them, from 1.
const Mutations = mutations

func Mutate(n int) { activeMutation.Store(uint32(n)) }
