package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-echarts/statsview/statics"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
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
		list = append(list, text.String())
	}
	return list
}

// TestThePagePlotsWhatTheTableSays reads the data from the page, as the browser does.
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

	scripts := texts(root, "script")
	require.Len(t, scripts, 2)
	_, data, found := strings.Cut(scripts[1], "const runs = ")
	require.True(t, found)
	var shown []plotted
	require.NoError(t, json.NewDecoder(strings.NewReader(data)).Decode(&shown))
	require.Len(t, shown, 2)
	sum := func(counts []int) (n int) {
		for _, c := range counts {
			n += c
		}
		return n
	}
	for i, c := range s.runs[0] {
		total := func(points [][2]float64) (sum float64) {
			for _, p := range points {
				sum += p[1] / 100 * float64(c.series.width) * float64(len(c.nodes))
			}
			return sum
		}
		require.Equal(t, len(c.counted(1, maxNodes)), sum(shown[i].Waits))
		require.Equal(t, sum(slices.Collect(maps.Values(c.latency))), sum(shown[i].Latency))
		held, err := strconv.ParseFloat(want[2*4+1+i], 64)
		require.NoError(t, err)
		require.InDelta(t, held, total(shown[i].Idle)/float64(c.over)*hoursAWeek, 0.6)
		utilization, err := strconv.ParseFloat(strings.TrimSuffix(want[6*4+1+i], " %"), 64)
		require.NoError(t, err)
		require.InDelta(t, utilization, 100*total(shown[i].Busy)/float64(len(c.nodes))/float64(c.over), 0.01)
		require.NotEmpty(t, shown[i].Gantt.Spent[spentJob])
	}
}

func TestThePageIsSelfContained(t *testing.T) {
	_, text := page(t, "-jobs", "100", "-seeds", "2")
	root, err := html.Parse(bytes.NewReader(text))
	require.NoError(t, err)
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			require.NotContains(t, []string{"src", "href", "srcset", "action", "data"}, a.Key)
			require.NotContains(t, a.Val, "//")
		}
		require.NotEqual(t, "link", n.Data)
	}
	for _, style := range texts(root, "style") {
		require.NotContains(t, style, "url(")
		require.NotContains(t, style, "@import")
	}
	scripts := texts(root, "script")
	require.Len(t, scripts, 2)
	require.Equal(t, statics.EchartJS, scripts[0])
	require.NotContains(t, scripts[1], "//")
}

// probe counts, in the browser, the pixels of each plot that are not of its most
// frequent color, and tells the page around it.
const probe = `<script>
const ink = {};
for (const plot of document.querySelectorAll(".plot")) {
  ink[plot.id] = 0;
  for (const canvas of plot.querySelectorAll("canvas")) {
    const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    const count = new Map();
    for (const p of pixels) count.set(p, (count.get(p) || 0) + 1);
    ink[plot.id] += pixels.length - Math.max(...count.values());
  }
}
parent.postMessage({ink: ink, width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth}, "*");
</script>`

// frame shows the page in a frame: a window is never narrower than 500 pixels.
const frame = `<iframe src="page.html" style="border: 0; width: %dpx; height: 2000px"></iframe>
<script>addEventListener("message", e => { document.body.dataset.seen = JSON.stringify(e.data); });</script>`

func browse(t *testing.T, browser string, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(browser, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir=" + t.TempDir(),
		"--virtual-time-budget=5000",
	}, args...)...).Output()
	require.NoError(t, err)
	return out
}

// only hides all but the Gantt charts.
const only = `<style>body > :not(main), section:not(:has(#nodes0, #nodes1)) { display: none } main { margin: 0 }</style>`

// Makes the picture in the README, of the page that "go run ./examples/simulate" writes:
// "make browser SCREENSHOT=examples/simulate/nodes.png".
func TestTheBrowserMakesThePicture(t *testing.T) {
	browser, picture := os.Getenv("JOBLIFE_BROWSER"), os.Getenv("JOBLIFE_SCREENSHOT")
	if browser == "" || picture == "" {
		t.Skip("JOBLIFE_BROWSER or JOBLIFE_SCREENSHOT is not set")
	}
	_, text := page(t, "-seeds", "1")
	name := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(name, append(text, only...), 0o666))
	browse(t, browser, "--window-size=1400,660", "--screenshot="+picture, "file://"+name)
	_, err := os.Stat(picture)
	require.NoError(t, err)
}

// Opens the page in the browser that JOBLIFE_BROWSER names: "make browser".
func TestTheBrowserDrawsEachPlot(t *testing.T) {
	browser := os.Getenv("JOBLIFE_BROWSER")
	if browser == "" {
		t.Skip(`JOBLIFE_BROWSER is not set: "make browser" sets it to chromium`)
	}
	_, text := page(t, "-jobs", "300", "-seeds", "1", "-straggle", "0.02")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "page.html"), append(text, probe...), 0o666))
	for _, width := range []int{400, 1400} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "frame.html"), fmt.Appendf(nil, frame, width), 0o666))
		for _, scheme := range []string{"dark", "light"} {
			value := map[string]string{"dark": "0", "light": "1"}[scheme]
			dom := browse(t, browser, "--window-size=1500,2200", "--blink-settings=preferredColorScheme="+value,
				"--dump-dom", "file://"+filepath.Join(dir, "frame.html"))
			root, err := html.Parse(bytes.NewReader(dom))
			require.NoError(t, err)
			var seen struct {
				Ink             map[string]int
				Width, Overflow int
			}
			for n := range root.Descendants() {
				for _, a := range n.Attr {
					if a.Key == "data-seen" {
						require.NoError(t, json.Unmarshal([]byte(a.Val), &seen))
					}
				}
			}
			require.Equal(t, width, seen.Width)
			require.LessOrEqual(t, seen.Overflow, 0)
			require.Len(t, seen.Ink, 6)
			for plot, ink := range seen.Ink {
				require.Greater(t, ink, 3000, "%s, %d pixels wide, %s", plot, width, scheme)
			}
		}
	}
}
