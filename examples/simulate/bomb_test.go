package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/joblife/joblife/internal/bomb"
)

func TestNoTraceTakesFarMoreThanItsLength(t *testing.T) {
	plain := []bomb.Bomb{
		bomb.Fill("no jobs", "", "a\n", ""),
		bomb.Fill("times that fall", "1 99999999 0 1 1\n", "1 0 0 1 1\n", ""),
		bomb.Fill("short jobs", "", "1 # 0 1 1\n", ""),
		bomb.Fill("empty lines", "", "\n", ""),
		bomb.Fill("comments", "", ";\n", ""),
		bomb.Fill("headers", "", "; MaxNodes: 7\n", ""),
		bomb.Fill("a long line", "", "1 ", ""),
		bomb.Fill("long numbers", "", "9999999999999999999999999999999999 ", "\n"),
		bomb.Fill("long fields", "1 0 ", "x", "\n"),
	}
	zipped := []bomb.Bomb{
		bomb.Gzip("zipped long lines", "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"),
		bomb.Gzip("zipped jobs that differ", "1 # 0 1 1\n"),
		bomb.Gzip("zipped jobs", "1 0 0 1 1\n"),
		bomb.Gzip("zipped lines that are no jobs", "a\n"),
		bomb.Gzip("zipped empty lines", "\n"),
		bomb.Gzip("zipped comments", ";\n"),
		bomb.Gzip("zipped zeros", "\x00"),
	}
	if os.Getenv("JOBLIFE_DEEP") == "" {
		plain, zipped = plain[:2], zipped[:2]
	}
	bomb.Defuse(t, func(text []byte) { _, _ = readTrace(bytes.NewReader(text)) }, append(plain, zipped...)...)
}
