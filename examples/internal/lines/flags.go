package lines

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
)

// ParseFlags parses a command line. If that asks for help, a text and the flags go to stdout,
// and the error is [flag.ErrHelp].
func ParseFlags(f *flag.FlagSet, args []string, stdout io.Writer, text string) error {
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, text)
		f.SetOutput(stdout)
		f.PrintDefaults()
	}
	return err
}

// Refuse tells what is wrong with the command line of a program, if it did not ask for help. It
// returns the exit status.
func Refuse(stderr io.Writer, name string, err error) int {
	if errors.Is(err, flag.ErrHelp) {
		return ExitOK
	}
	fmt.Fprintf(stderr, "%s: %s\nRun %[1]s -h for the flags.\n", name, Escape(err.Error()))
	return ExitUsage
}

// Number returns what sets n to the value of a flag, a number from least to most.
func Number(n *int, least, most int) func(string) error {
	return func(s string) error {
		v, err := strconv.Atoi(s)
		if err != nil || v < least || v > most {
			return fmt.Errorf("want a number from %d to %d", least, most)
		}
		*n = v
		return nil
	}
}
