package service

import "github.com/joblife/joblife/rset/alloc"

// A scheduler is the session with a scheduler (RFC 27).
type scheduler struct {
	phase alloc.Phase // the zero Phase is offline too
}
