package jobspec_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// BenchmarkParseRatio compares Parse with encoding/json into structs, and with one
// validating pass. The sides take turns. A quarter of the turns was faster than what
// counts, so that other load on the machine matters little.
func BenchmarkParseRatio(b *testing.B) {
	var recorded [][]byte
	for _, job := range refdata.Lines[recordedJob](b, "recorded/mixed.jsonl.gz", 380) {
		recorded = append(recorded, job.Jobspec)
	}
	b.Run("recorded", func(b *testing.B) { parseRatio(b, recorded) })
	for _, n := range []int{1, 64, 4096} {
		b.Run(fmt.Sprintf("variables=%d", n), func(b *testing.B) {
			parseRatio(b, slices.Repeat([][]byte{withEnvironment(n)}, 1+64/n))
		})
	}
}

func parseRatio(b *testing.B, texts [][]byte) {
	var took [3][]float64
	for b.Loop() {
		for i, side := range []func(in []byte) error{
			func(in []byte) error { _, err := jobspec.Parse(in); return err },
			func(in []byte) error { var v plainSpec; return json.Unmarshal(in, &v) },
			func(in []byte) error { return jsonobj.Check(in, 0) },
		} {
			start := time.Now()
			for _, in := range texts {
				if err := side(in); err != nil {
					b.Fatal(err)
				}
			}
			took[i] = append(took[i], float64(time.Since(start).Nanoseconds())/float64(len(texts)))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	at := len(took[0]) / 4
	b.ReportMetric(took[0][at], "ns/parse")
	b.ReportMetric(took[1][at]/took[0][at], "times-json")
	b.ReportMetric(took[0][at]/took[2][at], "passes")
}

// plainSpec is what a program would write that has no use for the checks.
type plainSpec struct {
	Version   int           `json:"version"`
	Resources []plainVertex `json:"resources"`
	Tasks     []struct {
		Command []string         `json:"command"`
		Slot    string           `json:"slot"`
		Count   map[string]int64 `json:"count"`
	} `json:"tasks"`
	Attributes struct {
		System struct {
			Duration     float64                          `json:"duration"`
			Cwd          string                           `json:"cwd"`
			Queue        string                           `json:"queue"`
			Bank         string                           `json:"bank"`
			Project      string                           `json:"project"`
			Job          struct{ Name string }            `json:"job"`
			Constraints  json.RawMessage                  `json:"constraints"`
			Dependencies []struct{ Scheme, Value string } `json:"dependencies"`
			Shell        struct {
				Options map[string]json.RawMessage `json:"options"`
			} `json:"shell"`
		} `json:"system"`
	} `json:"attributes"`
}

type plainVertex struct {
	Type      string          `json:"type"`
	Count     json.RawMessage `json:"count"`
	Unit      string          `json:"unit"`
	Label     string          `json:"label"`
	ID        string          `json:"id"`
	Exclusive bool            `json:"exclusive"`
	With      []plainVertex   `json:"with"`
}
