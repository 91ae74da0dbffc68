package zerocopy

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
)

func TestZeroCopyClaimsFollowWhatIsPlanted(t *testing.T) {
	check := func(name string, slow, fast float64, want study.Verdict) {
		t.Helper()
		c := studytest.ClaimOf(t, Study(), name)
		f := c.Find(studytest.Planted(10, func(arm string, round int, m *result.Measurement) {
			m.Records, m.Size = 1<<20, 1<<20
			ns := fast
			if arm == c.Takes()[0] {
				ns = slow
			}
			m.Elapsed = studytest.Wiggle(ns, round)
			m.Values = map[string]float64{toldCPU: ns}
		}, c.Takes()...))
		if f.Verdict != want || f.Measured == "" || f.Why == "" {
			t.Errorf("%s, %v against %v: %+v, want %s", name, slow, fast, f, want)
		}
	}
	for _, name := range []string{"zerocopy-sendfile", "zerocopy-copies"} {
		check(name, 1.9e6, 1e6, study.Holds)
		check(name, 1.1e6, 1e6, study.NotHere)
		check(name, 5e6, 1e6, study.NotHere)
	}
	check("zerocopy-useless-copies", 2e6, 1e6, study.Holds)
	check("zerocopy-useless-copies", 1e6, 1e6, study.NotHere)
}

func TestUntoldCPUTimeProvesNothing(t *testing.T) {
	c := studytest.ClaimOf(t, Study(), "zerocopy-useless-copies")
	f := c.Find(studytest.Planted(10, func(_ string, _ int, m *result.Measurement) { m.Elapsed, m.Size = 1, 1 }, c.Takes()...))
	if f.Verdict != study.NotChecked || f.Measured != "" {
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

// TestReceiverEndsWithItsParent: its standard input ends before any client connects.
func TestReceiverEndsWithItsParent(t *testing.T) {
	if why := study.NoSocket(); why != "" {
		t.Skip(why)
	}
	if err := receive(t.Context(), []string{"1000"}, strings.NewReader(""), new(strings.Builder)); err == nil {
		t.Error("it had nothing, and says that it had")
	}
}

func TestZeroCopyShowsWhatIsMissing(t *testing.T) {
	studytest.LooksFilled(t, showZero(studytest.Planted(0, nil)))
	e := studytest.Planted(3, func(_ string, round int, m *result.Measurement) {
		m.Records, m.Size, m.Elapsed = 1000, 1000, studytest.Wiggle(1000, round)
	}, zeroFile(pieces64), zeroSocket(bySendfile))
	for i := range e.Run.Header.Cells {
		e.Run.Header.Cells[i].Group, _, _ = strings.Cut(e.Run.Header.Cells[i].Name, ", ")
	}
	studytest.LooksFilled(t, showZero(e))
	if text := studytest.LooksRight(t, showZero(e)); !strings.Contains(text, "sendfile | ") {
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

func TestReflinkIsMissingWhereItCannotBe(t *testing.T) {
	for _, a := range Study().Arms(study.Choice{NeverReflink: "no extents", Count: 100}.OfStudy()) {
		if wanted := a.Name == zeroFile(byReflink); runtime.GOOS == "linux" && wanted != (a.Missing != "") {
			t.Errorf("%s: missing %q", a.Name, a.Missing)
		}
	}
}
