// Package errno has the error numbers in the messages of Flux. They are those of Linux, whatever
// this runs on.
package errno

// The error numbers, by what they mean there.
const (
	Perm        = 1   // EPERM: not allowed to this user
	NoEntry     = 2   // ENOENT: not known
	NoProcess   = 3   // ESRCH
	NoChild     = 10  // ECHILD: nothing to wait for
	Again       = 11  // EAGAIN: beyond a limit, or something else has to come before
	NoMemory    = 12  // ENOMEM: too many
	Access      = 13  // EACCES
	Busy        = 16  // EBUSY: there is no room at this time
	Exists      = 17  // EEXIST: known already
	Invalid     = 22  // EINVAL: understood and refused
	NoSys       = 38  // ENOSYS: no such topic, or nobody to ask
	NoData      = 61  // ENODATA: the end of a stream
	Protocol    = 71  // EPROTO: malformed
	Overflow    = 75  // EOVERFLOW: more than there is
	Size        = 90  // EMSGSIZE: the line is too long
	TimedOut    = 110 // ETIMEDOUT: there is no answer
	Unreachable = 113 // EHOSTUNREACH: the one who was asked is gone
)
