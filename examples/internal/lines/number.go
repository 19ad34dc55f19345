package lines

import (
	"fmt"
	"strconv"
)

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
