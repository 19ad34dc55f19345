//go:build !race

package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Under the race detector these take a minute; the goroutines of a run are in other tests too.

// Nothing is drawn outside of a figure, and no number is lost, in small and odd systems too.
func TestFiguresAreWhole(t *testing.T) {
	for _, args := range []string{
		"-jobs 300 -nodes 64 -straggle 0.02 -sweep -seeds 2", "-jobs 1", "-jobs 2 -nodes 1", "-jobs 40 -nodes 3000 -max-size 3000",
		"-jobs 30 -straggle 0", "-jobs 30 -epilog 0 -prolog 0", "-jobs 60 -mtbf 1d -nodes 16",
		"-jobs 100 -nodes 8 -cores 12 -share -straggle 0.05 -sweep", "-jobs 50 -nodes 65536 -max-size 65536", "-jobs 20 -straggler 3650d -straggle 1",
	} {
		s, _ := page(t, append([]string{"-seeds", "1"}, strings.Fields(args)...)...)
		names := make(map[string]bool)
		for _, f := range s.figures() {
			require.Contains(t, figureNames, f.Name)
			names[f.Name] = true
			for _, width := range []float64{wide, narrow} {
				whole(t, f.svg(width, false), width)
			}
		}
		require.Equal(t, s.o.sweep, names["slow"])
		require.True(t, names["time"] && names["free"] && names["waits"] && names["sizes"])
	}
}

func whole(t *testing.T, svg []byte, width float64) {
	t.Helper()
	require.NotContains(t, string(svg), "NaN")
	require.NotContains(t, string(svg), "Inf")
	in := xml.NewDecoder(bytes.NewReader(svg))
	height := 0.0
	var from, to, line float64 // of the last text, at least
	last := ""
	for {
		token, err := in.Token()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		at := make(map[string]float64)
		anchor := ""
		for _, a := range e.Attr {
			if a.Name.Local == "text-anchor" {
				anchor = a.Value
			}
			if a.Name.Local == "viewBox" {
				height, err = strconv.ParseFloat(strings.Fields(a.Value)[3], 64)
				require.NoError(t, err)
			}
			if x, err := strconv.ParseFloat(a.Value, 64); err == nil {
				at[a.Name.Local] = x
			}
		}
		if e.Name.Local == "text" {
			token, err = in.Token()
			require.NoError(t, err)
			text := string(token.(xml.CharData))
			long := 6.4 * float64(utf8.RuneCountInString(text))
			left := at["x"] - map[string]float64{"middle": long / 2, "end": long}[anchor]
			require.True(t, left >= 0 && left+long <= width, "%q is cut off", text)
			require.False(t, at["y"] == line && left < to && from < left+long, "%q is on another text", text)
			require.False(t, at["y"] == line && text == last, "%q is there twice", text)
			from, to, line, last = left, left+long, at["y"], text
		}
		for _, x := range []float64{at["x"], at["x"] + at["width"], at["cx"]} {
			require.True(t, x >= 0 && x <= width, "%v: %v", e.Name.Local, at)
		}
		for _, y := range []float64{at["y"], at["y"] + at["height"], at["cy"]} {
			require.True(t, y >= 0 && y <= height, "%v: %v", e.Name.Local, at)
		}
	}
}

// The picture in the README is what "go run ./examples/simulate -svg DIR" writes today, to
// DIR/nodes.svg, and so is the sentence.
func TestThePictureInTheREADME(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("math differs in the last bit, and so does the workload")
	}
	want, err := os.ReadFile("nodes.svg")
	require.NoError(t, err)
	deep := os.Getenv("JOBLIFE_DEEP") != ""
	seeds := []string{"-seeds", "1"}
	if deep {
		seeds = nil
	}
	s, _ := page(t, seeds...)
	require.True(t, bytes.Equal(want, s.figures()[0].svg(wide, true)))
	if deep {
		readme, err := os.ReadFile("../../README.md")
		require.NoError(t, err)
		require.Contains(t, string(readme), s.headline())
	}
}
