package browser

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
)

// axeVariable names the file axe.min.js of axe-core, which finds what keeps people from a page. It is not in this tree,
// because its license is another one (MPL-2.0): check fetches it from npm.
const axeVariable = "HOLDFAST_AXE"

// findings returns a line for each serious, critical or moderate finding. All that a page has is in it: nothing is to be loaded before.
const findings = `axe.run(document, {resultTypes: ["violations"], preload: false}).then((r) => r.violations.filter((v) => v.impact !== "minor").flatMap((v) =>
	v.nodes.slice(0, 3).map((n) => v.impact + ": " + v.id + ", " + v.help + ", " + v.nodes.length + " times: " + n.html.slice(0, 200) + " " + n.failureSummary)))`

// axe returns the script, or skips the test.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv(axeVariable)
	if path == "" {
		t.Skipf("%s names no axe.min.js (npm pack axe-core)", axeVariable)
	}
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// TestAxeFindsNothing opens every kind of page, light and wide, and dark on a telephone. Colours do not depend on the width,
// nor the layout on colours.
func TestAxeFindsNothing(t *testing.T) {
	script := axe(t)
	for name, site := range everyPage(t) {
		for scheme, wide := range map[string]int64{"light": 1280, "dark": 390} {
			t.Run(fmt.Sprintf("%s/%s/%d", name, scheme, wide), func(t *testing.T) {
				b := open(t, site, colours(scheme), chromedp.EmulateViewport(wide, 900))
				ask[chromedp.Void](b, `document.querySelectorAll("section").forEach((e) => e.style.contentVisibility = "visible"), 0`)
				if ask[int](b, fmt.Sprintf(`document.querySelectorAll(%q).length`, mark)) > 1 {
					b.click(mark, 0)
					b.pointAt(mark, 1)
				}
				ask[chromedp.Void](b, script+"; 0")
				found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](findings, chromedp.EvalAwaitPromise))
				if err != nil {
					t.Fatal(err)
				}
				for _, one := range found {
					t.Errorf("%s: %s", ask[string](b, "document.URL"), one)
				}
			})
		}
	}
}

// TestAxeFindsWhatIsPlanted plants a moderate and a serious finding.
func TestAxeFindsWhatIsPlanted(t *testing.T) {
	b := open(t, report(t, few(t).write(3)))
	ask[chromedp.Void](b, axe(t)+`; document.querySelector("h1").style.color = "#bbb", document.querySelector("main").insertAdjacentHTML("beforeend", "<h5>too deep</h5>"), 0`)
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](findings, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"serious: color-contrast", "moderate: heading-order"} {
		if !strings.Contains(strings.Join(found, "\n"), want) {
			t.Errorf("%s is not among %q", want, found)
		}
	}
}

// everyPage returns the address of a page of each kind: files, and pages of serve. Each has what its kind has, few times: axe
// looks at every element.
func everyPage(t *testing.T) map[string]string {
	t.Helper()
	sites := map[string]string{"bench": smallPage(t)}
	other := few(t)
	other.run.Header.Machine[0].Value = "another"
	sites["compare"] = report(t, few(t).write(10), other.write(10))

	dir := t.TempDir()
	made := func(args ...string) string {
		t.Helper()
		c := exec.Command(command, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
		return string(out)
	}
	made("audit", "--page", "audit.html", "--time", "2s", "--claim", "lines-page-4096", "--claim", "costs-switch")
	sites["audit"] = filepath.Join(dir, "audit.html")
	made("prove", "--level", "memory", "--workload", "writer,rotate,wal", "--policy", "durable", "--policy", "buffer=4KiB,flush=100ms,sync=1s", "--states", "300", "-o", "proof.jsonl")
	sites["prove"] = report(t, filepath.Join(dir, "proof.jsonl"))

	shown := t.TempDir()
	for i, host := range []string{"a", "b", "c", "d", "slow"} {
		f := few(t)
		f.run.Header.Machine = append(f.run.Header.Machine, machine.Fact{Name: machine.HostName, Value: host})
		if host == "slow" {
			for cell := range f.cost {
				f.cost[cell] *= 3
			}
		}
		f.run.Header.StartedAt = f.run.Header.StartedAt.Add(time.Duration(i) * time.Hour)
		if err := os.Rename(f.write(6), filepath.Join(shown, host+".jsonl")); err != nil {
			t.Fatal(err)
		}
	}
	at := serve(t, shown)
	for name, path := range map[string]string{"list": "", "run": "report?file=a.jsonl", "fleet": "fleet", "comparison": "compare?file=a.jsonl&file=slow.jsonl", "live": "live?file=a.jsonl"} {
		sites["serve/"+name] = at + path
	}
	return sites
}

// serve shows a directory to browsers until the test ends, and returns the address.
func serve(t *testing.T, dir string) string {
	t.Helper()
	c := exec.Command(command, "serve", dir)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("serve ended with %v", err)
		}
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}
