package jobspec

// MaxNesting is how deep resources may be in each other.
const MaxNesting = maxNesting
