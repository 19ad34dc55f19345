package alloc

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/jobstate/jobid"
)

var (
	// ErrMessage is returned when a text is not a message of RFC 27, or a value cannot be
	// written as one. Its text names the message, the key, and the offset in bytes from 0.
	ErrMessage = errors.New("alloc: invalid message")

	// ErrLimit is returned when a text is too long or a queue is full.
	ErrLimit = errors.New("alloc: limit exceeded")
)

// The other categories of errors.
var (
	errNotFound = errors.New("alloc: unknown job")
	errExists   = errors.New("alloc: duplicate job")
	errProtocol = errors.New("alloc: protocol violation")
)

// Causes that package jsonobj does not have.
var (
	errType     = errors.New("does not belong to this type of response")
	errSubset   = errors.New("names ranks that R does not have")
	errResource = errors.New("names no resource")
)

func messageError(message string, err error) error {
	return fmt.Errorf("%w: %s: %w", ErrMessage, message, err)
}

func jobError(id jobid.ID, category error) error { return fmt.Errorf("%w: %v", category, id) }
