package archive_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
)

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1, 64, 4096} {
		var all []entry
		for id := range n {
			all = append(all, job(jobid.ID(id))...)
		}
		packed := pack(b, all...)
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(packed)))
			for b.Loop() {
				a, err := archive.Read(bytes.NewReader(packed), archive.Limits{})
				if err != nil || len(a.Jobs) != n {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n), "jobs/op")
		})
		// The least that anyone pays who reads the archive.
		b.Run(fmt.Sprintf("jobs=%d/headers-alone", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(packed)))
			for b.Loop() {
				r := tar.NewReader(bytes.NewReader(packed))
				for {
					if _, err := r.Next(); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
