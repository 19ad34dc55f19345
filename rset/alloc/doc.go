// Package alloc speaks the protocol between a job manager and a scheduler,
// RFC 27.
package alloc
