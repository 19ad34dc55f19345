// Package browsertest looks at pages in a real browser.
package browsertest

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// frame shows a page in a frame: a window is never narrower than 500 pixels.
const frame = `<iframe src="page.html" style="border: 0; width: %dpx; height: 3000px"></iframe>
<script>addEventListener("message", e => { document.body.dataset.seen = JSON.stringify(e.data); });</script>`

// Browser returns the browser that JOBLIFE_BROWSER names, and skips the test if there is none.
func Browser(t *testing.T) string {
	browser := os.Getenv("JOBLIFE_BROWSER")
	if browser == "" {
		t.Skip(`JOBLIFE_BROWSER is not set: "make browser" sets it to chromium`)
	}
	return browser
}

// Each calls look with each page of widths, in the dark and in the light. The page is
// page.html of the folder. Look decodes what a script of the page posts to its parent.
func Each(t *testing.T, dir string, widths []int, look func(t *testing.T, width int, dark bool, decode func(v any))) {
	browser := Browser(t)
	for _, width := range widths {
		if err := os.WriteFile(filepath.Join(dir, "frame.html"), fmt.Appendf(nil, frame, width), 0o600); err != nil {
			t.Fatal(err)
		}
		for value, scheme := range []string{"dark", "light"} {
			t.Run(fmt.Sprint(width, " ", scheme), func(t *testing.T) {
				dom, err := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
					"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
					"--virtual-time-budget=5000", "--window-size=1500,3100", fmt.Sprintf("--blink-settings=preferredColorScheme=%d", value),
					"--dump-dom", "file://"+filepath.Join(dir, "frame.html")).Output()
				if err != nil {
					t.Fatal(err)
				}
				found := regexp.MustCompile(`data-seen="([^"]*)"`).FindSubmatch(dom)
				if found == nil {
					t.Fatalf("the page said nothing: %.2000s", dom)
				}
				look(t, width, scheme == "dark", func(v any) {
					t.Helper()
					if err := json.Unmarshal([]byte(html.UnescapeString(string(found[1]))), v); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}
