//go:build !unix

package bomb

import "time"

// ProcessorTime is not known here: the limits are those of other systems.
func ProcessorTime() time.Duration { return 0 }
