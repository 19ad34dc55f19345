package perilog

// Check is check, for tests of other packages' view.
func (j *Job) Check() error { return j.check() }

// Check is check.
func (h *Holds) Check() error { return h.check() }
