package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/joblife/joblife/examples/internal/browsertest"
)

func page(t *testing.T, args ...string) (*study, []byte) {
	t.Helper()
	o, err := parse(args, io.Discard)
	require.NoError(t, err)
	s := newStudy(o, io.Discard)
	require.NoError(t, s.open())
	require.NoError(t, s.play(context.Background()))
	var out bytes.Buffer
	require.NoError(t, s.page(&out))
	return s, out.Bytes()
}

func texts(root *html.Node, name string) (list []string) {
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Data != name {
			continue
		}
		var text strings.Builder
		for c := range n.Descendants() {
			if c.Type == html.TextNode {
				text.WriteString(c.Data)
			}
		}
		list = append(list, strings.ReplaceAll(text.String(), "\u00a0", " "))
	}
	return list
}

func TestThePagePlotsWhatTheTableSays(t *testing.T) {
	s, text := page(t, "-jobs", "300", "-nodes", "64", "-seeds", "1", "-trim", "0", "-straggle", "0.02")
	root, err := html.Parse(bytes.NewReader(text))
	require.NoError(t, err)
	var want []string
	for _, l := range s.lines() {
		want = append(want, l.Name, l.text(l.Whole), l.text(l.Partial), l.Difference())
	}
	require.Equal(t, want, texts(root, "td"))
	var printed bytes.Buffer
	require.NoError(t, s.print(&printed))
	for _, cell := range want {
		require.Contains(t, printed.String(), cell)
	}
	require.Contains(t, texts(root, "p"), s.headline())

	for _, c := range s.runs[0] {
		total := func(kind int) (sum float64) {
			for _, v := range c.series.points(kind) {
				sum += v[1] * float64(c.series.width)
			}
			return sum
		}
		all := c.counted(1, maxNodes)
		idle, wait := 0.0, 0.0
		for _, j := range all {
			idle += float64(j.idle)
			wait += j.wait()
		}
		require.InDelta(t, idle, total(seriesIdle), 1e-3)
		require.InDelta(t, wait, total(seriesWaiting), 1e-3)
		require.InDelta(t, c.ran, total(seriesBusy), 1e-3)
		require.Zero(t, c.waiting)

		tail := float64(c.latencyQuantile(0.99))
		for _, v := range survivors(c.latency) {
			require.False(t, v[0] > tail && v[1] > 1, "%v lasts longer than the 99th percentile, %v", v, tail)
		}
	}
}

// In the table, and the points of both curves.
func TestWhatMayBeChanceIsGrayOnThePage(t *testing.T) {
	s, text := page(t, "-jobs", "300", "-nodes", "64", "-seeds", "2", "-straggle", "0.02", "-sweep")
	chance := func(lines []line) (n int) {
		for _, l := range lines {
			if l.Chance() {
				n++
			}
		}
		return n
	}
	cells, points := chance(s.lines()), 0
	for _, p := range append(s.sizes(), s.shares...) {
		points += chance(p.lines)
	}
	require.True(t, cells > 0 && points > 0)
	require.Equal(t, cells, strings.Count(string(text), `<td class="chance">`))
	require.Equal(t, 2*2*points, strings.Count(string(text), ` r="4" class="chance"`), "of two ways, in plots of two widths")
	require.Contains(t, s.headline(), ", and whether jobs start earlier cannot be told from chance.")
	require.Equal(t, 2*2*3, strings.Count(string(text), ` class="out"`), "warm-up and drain, in three panels")
}

func TestSurvivors(t *testing.T) {
	require.Equal(t, [][2]float64{{0, 100}, {1, 100}, {1, 75}, {3, 75}, {3, 0}}, survivors(map[seconds]int{1: 1, 3: 3}))
}

// What is joined to blocks is neither more nor less than the segments.
func TestBlocksAreTheSegments(t *testing.T) {
	s, _ := page(t, "-jobs", "100", "-nodes", "64", "-seeds", "1", "-straggle", "0.02")
	for _, c := range s.runs[0] {
		var segments, blocks [4]seconds
		n := 0
		for _, g := range c.segments {
			if g.row >= 10 && g.row <= 40 {
				segments[g.kind] += g.to - g.from
				n++
			}
		}
		list := c.blocks(-1, c.last+1, 10, 40)
		for _, b := range list {
			blocks[b.kind] += seconds(b.end-b.row+1) * (b.to - b.from)
		}
		require.Equal(t, segments, blocks)
		require.Less(t, len(list), n)
	}
	around := s.around()
	require.NotZero(t, around)
	require.Positive(t, s.runs[0][wholeJob].jobs[around].idle)
}

func TestAxes(t *testing.T) {
	for hi := 1.0; hi < 1e7; hi *= 1.7 {
		for _, a := range []axis{linear(0, hi, 5, timeSteps, short), logarithmic(1, hi, 5, timeSteps, short)} {
			require.Zero(t, a.at(a.lo))
			require.InDelta(t, 1, a.at(a.hi), 1e-9)
			require.InDelta(t, 1, a.at(2*a.hi), 1e-9, "it ends there")
			require.LessOrEqual(t, len(a.ticks), 6)
			require.NotEmpty(t, a.ticks)
			for i, tick := range a.ticks {
				require.True(t, i == 0 || tick > a.ticks[i-1], a.ticks)
			}
		}
	}
}

func TestThePageIsSelfContained(t *testing.T) {
	_, text := page(t, "-jobs", "100", "-seeds", "2")
	root, err := html.Parse(bytes.NewReader(text))
	require.NoError(t, err)
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			require.NotContains(t, []string{"src", "href", "srcset", "action", "data"}, a.Key)
			require.True(t, a.Key == "xmlns" || !strings.Contains(a.Val, "//"), a.Val)
		}
		require.NotContains(t, []string{"link", "script", "img"}, n.Data)
	}
	for _, style := range texts(root, "style") {
		require.NotContains(t, style, "url(")
		require.NotContains(t, style, "@import")
	}
}

// probe looks, in the browser, for what a reader stumbles over.
const probe = `<script>
const faults = [], dark = matchMedia("(prefers-color-scheme: dark)").matches;
const fault = text => { if (faults.length < 20) faults.push(text); };
const rgb = color => color.match(/[\d.]+/g).slice(0, 3).map(Number);
const light = color => rgb(color).map(c => c / 255).map(c => c <= 0.04 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const paper = light(getComputedStyle(document.body).backgroundColor);
const contrast = color => { const a = light(color); return (Math.max(a, paper) + 0.05) / (Math.min(a, paper) + 0.05); };
if (dark !== (paper < 0.1)) fault("the paper has the wrong color");
for (const cell of document.querySelectorAll("th, td, p, h1, h2")) {
  const box = cell.getBoundingClientRect();
  if (box.right > innerWidth || box.left < 0) fault("cut off: " + cell.textContent);
  if (contrast(getComputedStyle(cell).color) < 4.5) fault("pale: " + cell.textContent);
}
let plots = 0;
for (const section of document.querySelectorAll("section")) {
  const seen = [...section.querySelectorAll("svg")].filter(svg => svg.getBoundingClientRect().width > 0);
  if (seen.length !== 1) fault(section.id + ": " + seen.length + " plots");
  const svg = seen[0], box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
  plots++;
  if (box.width < 0.85 * Math.min(innerWidth, 700) || box.height < 200) fault(section.id + " is small: " + box.width + " x " + box.height);
  const texts = [...svg.querySelectorAll("text")].map(e => [e, e.getBoundingClientRect()]);
  texts.forEach(([e, r], i) => {
    if (parseFloat(getComputedStyle(e).fontSize) * scale < 10.5) fault(section.id + " is too small to read: " + e.textContent);
    if (r.left < box.left - 1 || r.right > box.right + 1 || r.bottom > box.bottom + 1) fault(section.id + " cuts off: " + e.textContent);
    if (contrast(getComputedStyle(e).fill) < 4.5) fault(section.id + " is pale: " + e.textContent);
    for (const [f, q] of texts.slice(i + 1))
      if (r.left < q.right && q.left < r.right && r.top + 3 < q.bottom && q.top + 3 < r.bottom) fault(section.id + ": " + e.textContent + " collides with " + f.textContent);
  });
  const grid = Math.max(...[...svg.querySelectorAll("path.grid")].map(e => contrast(getComputedStyle(e).stroke)));
  for (const name of ["whole", "partial", "job", "prolog", "epilog", "idle", "chance"])
    for (const e of svg.querySelectorAll("." + name)) {
      const style = getComputedStyle(e), c = contrast(style.stroke === "none" ? style.fill : style.stroke);
      if (c < 3 || c < 1.5 * grid) fault(section.id + ": " + name + " has a contrast of " + c + ", the grid of " + grid);
    }
}
parent.postMessage({plots: plots, faults: faults, width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth}, "*");
</script>`

// Opens the page in the browser that JOBLIFE_BROWSER names: "make browser".
func TestAReaderInTheBrowserStumblesOverNothing(t *testing.T) {
	browsertest.Browser(t) // which takes no time if there is none
	_, text := page(t, "-jobs", "1000", "-seeds", "2", "-straggle", "0.02", "-sweep")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "page.html"), append(text, probe...), 0o666))
	browsertest.Each(t, dir, []int{400, 800, 1400}, func(t *testing.T, width int, _ bool, decode func(any)) {
		var seen struct {
			Faults                 []string
			Plots, Width, Overflow int
		}
		decode(&seen)
		require.Equal(t, width, seen.Width)
		require.LessOrEqual(t, seen.Overflow, 0)
		require.Equal(t, 6, seen.Plots)
		require.Empty(t, seen.Faults)
	})
}
