// Package disk is a file system in memory for tests of what keeps files. It fails at the
// calls that it is told to, and a crash leaves what was synced and, of the rest, any part.
//
//	d := disk.New()
//	for k := 1; ; k++ {
//		d.StopAt(k)
//		// use the files
//		if !d.Stopped() {
//			break // there is no k-th call
//		}
//		d.Crash()
//		// open the files and check them
//	}
//
// [Cuts] do so with real files: a process is traced, and a Disk repeats its calls up to a cut.
package disk
