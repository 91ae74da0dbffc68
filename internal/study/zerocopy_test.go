package study

import (
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
)

func TestZeroCopyClaimsFollowWhatIsPlanted(t *testing.T) {
	check := func(name string, slow, fast float64, want Verdict) {
		t.Helper()
		c := claimOf(t, ZeroCopy(), name)
		f := c.Find(planted(10, func(arm string, round int, m *result.Measurement) {
			m.Records, m.Size = 1<<20, 1<<20
			ns := fast
			if arm == c.Arms[0] {
				ns = slow
			}
			m.Elapsed = wiggle(ns, round)
			m.Values = map[string]float64{toldCPU: ns}
		}, c.Arms...))
		if f.Verdict != want || f.Measured == "" || f.Why == "" {
			t.Errorf("%s, %v against %v: %+v, want %s", name, slow, fast, f, want)
		}
	}
	for _, name := range []string{"zerocopy-sendfile", "zerocopy-copies"} {
		check(name, 1.9e6, 1e6, Holds)
		check(name, 1.1e6, 1e6, NotHere)
		check(name, 5e6, 1e6, NotHere)
	}
	check("zerocopy-useless-copies", 2e6, 1e6, Holds)
	check("zerocopy-useless-copies", 1e6, 1e6, NotHere)
}

func TestUntoldCPUTimeProvesNothing(t *testing.T) {
	c := claimOf(t, ZeroCopy(), "zerocopy-useless-copies")
	f := c.Find(planted(10, func(_ string, _ int, m *result.Measurement) { m.Elapsed, m.Size = 1, 1 }, c.Arms...))
	if f.Verdict != NotChecked || f.Measured != "" {
		t.Errorf("%+v", f)
	}
}

func TestReceiverRefusesWhatIsNoSize(t *testing.T) {
	check := func(want string, args ...string) {
		t.Helper()
		if err := receive(t.Context(), args, strings.NewReader(""), new(strings.Builder)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want %q", args, err, want)
		}
	}
	check("has 0 arguments")
	check("has 2 arguments", "1", "2")
	check(`"x" bytes can't be received`, "x")
	check(`"0" bytes can't be received`, "0")
	check(`"99999999999999" bytes can't be received`, "99999999999999")
}

// TestReceiverEndsWithWhoStartedIt: its standard input ends before anybody connects.
func TestReceiverEndsWithWhoStartedIt(t *testing.T) {
	if why := noSocket(); why != "" {
		t.Skip(why)
	}
	if err := receive(t.Context(), []string{"1000"}, strings.NewReader(""), new(strings.Builder)); err == nil {
		t.Error("it had nothing, and says that it had")
	}
}

func TestReflinkIsMissingWhereItCannotBe(t *testing.T) {
	for _, a := range ZeroCopy().Arms(Choice{NeverReflink: "no extents", Count: 100}.ofStudy()) {
		if wanted := a.Name == zeroFile(byReflink); runtime.GOOS == "linux" && wanted != (a.Missing != "") {
			t.Errorf("%s: missing %q", a.Name, a.Missing)
		}
	}
	g := ground(t)
	why := noReflink(g)
	left, err := os.ReadDir(g.Dir())
	if err != nil || len(left) > 0 {
		t.Errorf("the trial of a reflink has left %v; %v", left, err)
	}
	if g.FileSystem == "ext2/ext3/ext4" && !strings.Contains(why, "can't share their bytes") {
		t.Errorf("on %s: %q", g.FileSystem, why)
	}
}

func TestZeroCopyShowsWhatIsMissing(t *testing.T) {
	looksFilled(t, showZero(planted(0, nil)))
	e := planted(3, func(_ string, round int, m *result.Measurement) {
		m.Records, m.Size, m.Elapsed = 1000, 1000, wiggle(1000, round)
	}, zeroFile(pieces64), zeroSocket(bySendfile))
	for i := range e.run.Header.Cells {
		e.run.Header.Cells[i].Group, _, _ = strings.Cut(e.run.Header.Cells[i].Name, ", ")
	}
	looksFilled(t, showZero(e))
	if text := looksRight(t, showZero(e)); !strings.Contains(text, "sendfile | ") {
		t.Errorf("the arm is not shown:\n%s", text)
	}
}

// TestTenTimesIsThePublishedUnit: the document's client received 10 files of 1 GiB.
func TestTenTimesIsThePublishedUnit(t *testing.T) {
	of := result.Trial{Measurement: result.Measurement{Records: 1 << 28, Size: 1 << 28, Elapsed: 100 * time.Millisecond}}
	if got := tenTimes(of); math.Abs(got-4e9) > 1 {
		t.Errorf("256 MiB in 100 ms are %v ns for 10 GiB, want 4 s", got)
	}
	if got := taken(4e9); got != "4.00 seconds" {
		t.Error(got)
	}
}
