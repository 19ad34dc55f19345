package rset_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/rset"
)

// BenchmarkParseRatio compares Parse with encoding/json into structs, which leaves
// idsets and hosts as they are, and with one validating pass. The sides take turns.
// A quarter of the turns was faster than what counts, so that other load on the
// machine matters little.
func BenchmarkParseRatio(b *testing.B) {
	benchSizes(b, func(b *testing.B, n int, different bool) {
		in := []byte(clusterText(n, different))
		repeat := 1 + 8192/len(in)
		var took [3][]float64
		for b.Loop() {
			for i, side := range []func() error{
				func() error { _, err := rset.Parse(in); return err },
				func() error { var v plainR; return json.Unmarshal(in, &v) },
				func() error { return jsonobj.Check(in, 0) },
			} {
				start := time.Now()
				for range repeat {
					if err := side(); err != nil {
						b.Fatal(err)
					}
				}
				took[i] = append(took[i], float64(time.Since(start).Nanoseconds())/float64(repeat))
			}
		}
		for i := range took {
			slices.Sort(took[i])
		}
		at := len(took[0]) / 4
		b.ReportMetric(took[0][at], "ns/parse")
		b.ReportMetric(took[1][at]/took[0][at], "times-json")
		b.ReportMetric(took[0][at]/took[2][at], "passes")
	})
}

// plainR is what a program would write that has no use for the checks.
type plainR struct {
	Version   int `json:"version"`
	Execution struct {
		Lite []struct {
			Rank     string            `json:"rank"`
			Children map[string]string `json:"children"`
		} `json:"R_lite"`
		Starttime  float64           `json:"starttime"`
		Expiration float64           `json:"expiration"`
		Nodelist   []string          `json:"nodelist"`
		Properties map[string]string `json:"properties"`
	} `json:"execution"`
}
