//go:build go1.25

package provetest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/provetest"
)

func TestMain(m *testing.M) { os.Exit(isolate.Tests{M: m}.Run()) }

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

// TestPlantedBugsAreFound plants each bug in the example's store. It does not report what one kind of
// crash can't show.
func TestPlantedBugsAreFound(t *testing.T) {
	if isolate.RaceEnabled {
		t.Skip("the example runs under the race detector")
	}
	for _, c := range []struct {
		name, level string
		bugs        bugs
		want        string // the rules that it may be found by, or none
	}{
		{"no flush", "kill", bugs{noFlush: true}, "lost"},
		{"no sync", "kill", bugs{noSync: true}, ""},
		{"no sync, power", "power", bugs{noSync: true}, "lost"},
		{"deaf", "kill", bugs{deaf: true}, ""},
		{"deaf, fault", "fault", bugs{deaf: true}, "lost"},
		{"again", "fault", bugs{again: true}, "lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := workload(c.bugs)
			if c.want != "" {
				w.Time *= 30 // it ends with the first that is found
			}
			rule, words := provetest.Find(t, w, c.level)
			if rule != c.want {
				t.Errorf("it was found as %q: %s", rule, words)
			}
			if _, kept, _ := strings.Cut(words, "its files are in "); kept != "" {
				if err := os.RemoveAll(kept); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestWhatCannotBeReadIsTold has a store that no crash leaves readable.
func TestWhatCannotBeReadIsTold(t *testing.T) {
	w := workload(bugs{})
	w.Read = func(string) (map[string]string, error) { return nil, errors.New("the magic is wrong") }
	rule, words := provetest.Find(t, w, "kill")
	text, kept, _ := strings.Cut(words, "; its files are in ")
	if rule != "unread" || text != "after crash 1 of a directory: the magic is wrong" {
		t.Errorf("%s: %s", rule, words)
	}
	if entries, err := os.ReadDir(kept); err != nil || len(entries) != 1 || os.RemoveAll(kept) != nil {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestNothingOfAStoreIsLeft has a store that starts processes, which leave its group, its session, its environment and their parent.
func TestNothingOfAStoreIsLeft(t *testing.T) {
	isolate.Once(t)
	setsid, err := exec.LookPath("setsid")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("it needs Linux and setsid")
	}
	own := os.Getenv("PROVETEST_STRAYS")
	if own == "" { // the test, and no process of the store
		own = filepath.Join(t.TempDir(), "strays")
		t.Setenv("PROVETEST_STRAYS", own)
	}
	w := workload(bugs{})
	write := w.Write
	w.Write = func(dir string, log *provetest.Log) error {
		stray := exec.Command(setsid, "sh", "-c", "(sh -c 'echo $$ >>"+own+"; sleep 1000; :' &)")
		stray.Env = []string{"PATH=" + os.Getenv("PATH")}
		if err := stray.Run(); err != nil {
			return err
		}
		return write(dir, log)
	}
	for _, level := range []string{"kill", "fault", "power"} {
		if rule, words := provetest.Find(t, w, level); rule != "" {
			t.Errorf("level %s: %s: %s", level, rule, words)
		}
	}
	pids, err := os.ReadFile(own)
	if err != nil || len(pids) == 0 {
		t.Fatalf("%q, %v", pids, err)
	}
	for _, pid := range strings.Fields(string(pids)) {
		if words, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.Contains(string(words), own) {
			t.Errorf("process %s is left: %q", pid, words)
		}
	}
}

// TestValuesThatMayBeThere lists what notes allow.
func TestValuesThatMayBeThere(t *testing.T) {
	const one, two = "begin \"k\" \"1\"\nack \"k\" \"1\"\n", "begin \"k\" \"2\"\nack \"k\" \"2\"\n"
	const begunTwo = "begin \"k\" \"2\"\n"
	const lost1, lost2 = `lost: key "k": value "1" was acknowledged, and none is there`, `lost: key "k": value "2" was acknowledged, and the older "1" is there`
	for _, c := range []struct{ notes, is, want string }{
		{"", "", ""},
		{"", "1", `invented: key "k": value "1" is there, which was never stored`},
		{one, "1", ""},
		{one, "", lost1},
		{one, "3", `invented: key "k": value "3" is there, which was never stored`},
		{one + begunTwo, "1", ""},
		{one + begunTwo, "2", ""},
		{one + begunTwo, "", lost1},
		{one + two, "1", lost2},
		{one + two, "2", ""},
		{one + "ack \"k\" \"2", "1", ""}, // cut off
		{"begin \"k\" \"1\"\n" + begunTwo + "ack \"k\" \"1\"\nack \"k\" \"2\"\n", "1", ""}, // at the same time
		{"begin \"k\" \"1\"\n" + begunTwo + "ack \"k\" \"1\"\nack \"k\" \"2\"\n", "", `lost: key "k": value "2" was acknowledged, and none is there`},
		{"begin \"k\" \"1\"\n" + two, "1", ""},                    // it came late
		{"begin \"k\" \"1\"\nlife\n" + two, "1", lost2},           // its process had ended before
		{"begin \"k\" \"1\"\nlife\nack \"k\" \"1\"\n", "", lost1}, // found, and promised
		{one + "life\nack \"k\" \"1\"\n", "1", ""},
		{one + "begin \"k\" \"\"\nack \"k\" \"\"\n", "", ""},
		{one + "begin \"k\" \"\"\nack \"k\" \"\"\n", "1", `lost: key "k": value "" was acknowledged, and the older "1" is there`},
		{"ack \"k\" \"1\"\n", "1", `key "k": value "1" was acknowledged, and not begun`},
	} {
		found := map[string]string{}
		if c.is != "" {
			found["k"] = c.is
		}
		if got := provetest.Judge(c.notes, found); got != c.want {
			t.Errorf("%q, and %q is there: %s, want %s", c.notes, c.is, got, c.want)
		}
	}
}

// TestNoWorkloadIsLinked: whoever tests a store takes the engine alone, and none of holdfast's other packages that
// write. Neither do the engine's other rooms.
func TestNoWorkloadIsLinked(t *testing.T) {
	isolate.Once(t) // it asks the go command
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps", ".", "../internal/crash/...")
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if errors.Is(err, exec.ErrNotFound) {
			t.Skip("there is no go command, as under wine: ", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		linked := strings.Fields(string(out))
		if !slices.Contains(linked, "github.com/holdfast-go/holdfast/internal/crash") {
			t.Error("the engine is not linked")
		}
		for _, room := range []string{"files", "filecopy", "rotate", "wal", "internal/catalogue"} {
			if slices.Contains(linked, "github.com/holdfast-go/holdfast/"+room) {
				t.Errorf("%s: %s is linked", system, room)
			}
		}
	}
}
