package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// TestWriteAndCopyTellTheDoubtOfAFileSystemWithoutAJournal asks real file systems, in text and as
// JSON, about durable files and files in doubt.
func TestWriteAndCopyTellTheDoubtOfAFileSystemWithoutAJournal(t *testing.T) {
	check := func(name string, lacks bool) {
		t.Run(name, func(t *testing.T) {
			kinds, err := volume.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := kinds[0].Can(); err != nil {
				t.Skip(err)
			}
			isolate.Mounts(t, func(t *testing.T) {
				v, err := volume.Make(t.Context(), t.TempDir(), kinds[0], max(kinds[0].Least, 16<<20))
				if missing := (*volume.MissingError)(nil); errors.As(err, &missing) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				tellsDoubt(t, v.Dir(), lacks)
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
	check("ext2", true)
	check("ext4-nojournal", true)
	check("ext4", false)
}

func tellsDoubt(t *testing.T, dir string, lacks bool) {
	source := filepath.Join(t.TempDir(), "source")
	mustWrite(t, source, "x\n")
	number := 0
	fresh := func() string {
		number++
		return filepath.Join(dir, fmt.Sprint("new", number))
	}
	for _, sync := range []string{"never", "close", "each"} {
		for _, args := range [][]string{
			{"write", "--policy", "sync=" + sync, "--out"},
			{"write", "--policy", "sync=" + sync, "--split", "1", "--out"},
			{"copy", "--policy", "sync=" + sync, source},
		} {
			for _, json := range []bool{false, true} {
				to, said := fresh(), []string{"caution: a file system there has no journal"}
				if slices.Contains(args, "--split") {
					to += "{}"
				}
				command := append(append([]string{}, args...), to)
				if json {
					command = append(command, "--json")
					said = []string{`"no_journal":1`, `"no_journal":2`}
				}
				var stdout, stderr strings.Builder
				if err := runCommand(t.Context(), command, strings.NewReader("x\n"), &stdout, &stderr); err != nil {
					t.Fatalf("%q: %v\n%s", command, err, stderr.String())
				}
				reported := false
				for _, text := range said {
					reported = reported || strings.Contains(stdout.String(), text)
				}
				if want := lacks && sync != "never"; reported != want {
					t.Errorf("%q: the doubt is reported: %v, want %v\n%s", command, reported, want, stdout.String())
				}
			}
		}
	}
}
