//go:build !unix

package joblifetest

import "time"

// cpuTime does not know, so that nothing takes too long.
func cpuTime() time.Duration { return 0 }
