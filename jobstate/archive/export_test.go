package archive

// WithDefaults returns the limits in force.
func (l Limits) WithDefaults() Limits { return l.withDefaults() }
