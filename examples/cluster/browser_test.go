package main

import (
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/examples/internal/browsertest"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// probe looks, in the browser, for what a visitor stumbles over.
const probe = `<script>
const faults = [], fault = text => { if (faults.length < 20) faults.push(text); };
const light = color => {
  const [r, g, b] = color.match(/[\d.]+/g).slice(0, 3).map(v => { v /= 255; return v > 0.03928 ? Math.pow((v + 0.055) / 1.055, 2.4) : v / 12.92; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const paper = light(getComputedStyle(document.body).backgroundColor);
const contrast = color => { const a = light(color); return (Math.max(a, paper) + 0.05) / (Math.min(a, paper) + 0.05); };
let seen = 0;
for (const e of document.querySelectorAll("h1, h2, p, a, td, th, dt, dd, span, small, svg")) {
  const box = e.getBoundingClientRect(), style = getComputedStyle(e), what = e.tagName + " " + e.textContent.slice(0, 40);
  if (box.width === 0) continue;
  seen++;
  if (box.right > innerWidth + 0.5 || box.left < -0.5) fault("cut off: " + what);
  if (e.tagName === "svg" ? box.height < 15 || box.width < 150 : parseFloat(style.fontSize) < 12) fault("small: " + what);
  if (e.tagName !== "svg" && contrast(style.color) < 4.5) fault("pale: " + what);
}
for (const e of document.querySelectorAll("rect, path.use")) if (contrast(getComputedStyle(e).fill) < 3) fault("pale: " + e.getAttribute("class"));
parent.postMessage({seen, faults, dark: paper < 0.1, width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth}, "*");
</script>`

// Opens the pages in the browser that JOBLIFE_BROWSER names: "make browser".
func TestAVisitorInTheBrowserStumblesOverNothing(t *testing.T) {
	browsertest.Browser(t) // which takes no time if there is none
	w, ctx := begin(t, 4, allActions), within(t, 3*time.Minute)
	w.nodes()
	at := w.page(ctx)
	over := w.submit(ctx, "over", 2, "sleep 0.2; exit 3")
	w.over(ctx, over)
	spec, err := jobspec.New(jobspec.Job{Nodes: 2, Exclusive: true, Command: []string{"sh", "-c", w.waiting()}, Name: strings.Repeat("long", 20)})
	require.NoError(t, err)
	text, err := spec.MarshalJSON()
	require.NoError(t, err)
	answer := w.asks(ctx, "submit", wire.Request{Key: "runs", Jobspec: text})
	runs := answer.ID
	w.starts(ctx, runs)
	w.submit(ctx, "waits", 4, "true")
	w.asks(ctx, "drain", wire.Request{Ranks: idset.Of(3), Note: "a " + strings.Repeat("very ", 20) + strings.Repeat("long", 20) + " reason"})
	w.history(ctx, 1)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	owner := &http.Client{Jar: jar}
	get(owner, at+"/?token=secret")
	dir := t.TempDir()
	_, style := get(owner, at+"/page.css")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "page.css"), []byte(style), 0o600))
	for name, c := range map[string]struct {
		client    *http.Client
		path      string
		has       string
		wantWords int
	}{
		"home": {owner, "/", "drained", 60}, "over": {owner, "/job/" + over.String(), "clean-up", 60},
		"runs": {owner, "/job/" + runs.String(), "held by", 40}, "stranger": {http.DefaultClient, "/", "over", 15},
	} {
		var page string
		w.eventually(func() bool {
			_, page = get(c.client, at+c.path)
			return strings.Contains(page, c.has)
		}, "%s", name)
		page = strings.NewReplacer(`"/page.css"`, `"page.css"`, `<script src="/page.js" defer></script>`, "").Replace(page)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "page.html"), []byte(page+probe), 0o600))
		t.Run(name, func(t *testing.T) {
			browsertest.Each(t, dir, []int{400, 1400}, func(t *testing.T, width int, dark bool, decode func(any)) {
				var seen struct {
					Faults                []string
					Seen, Width, Overflow int
					Dark                  bool
				}
				decode(&seen)
				require.Equal(t, width, seen.Width)
				require.Equal(t, dark, seen.Dark)
				require.LessOrEqual(t, seen.Overflow, 0)
				require.Empty(t, seen.Faults)
				require.GreaterOrEqual(t, seen.Seen, c.wantWords)
			})
		})
	}
}
