package timing

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// originals are the SHA-256 of the repetition's own files, by their names in
// chapter_13/time_results of its repository, tomersela/tlpi-solutions. Some were
// saved without the line feed that the script ends a line with.
var originals = []struct {
	file   string
	layout Layout
	noEnd  bool
	rows   func() []Row
	sum    string
}{
	{"bfs_results.csv", Averages, false, copiesOn("bfs"), "89829156f7ed91fee803f0e6091509e0435fd9f7497b3f50d18cbd6218e0177d"},
	{"btrfs_results.csv", Named, true, copiesOn("btrfs"), "9d7b52676ce5e692ec3096377308bfab618ba43fb8bb7bd21d10e96c7794f196"},
	{"ext2_results.csv", Averages, false, copiesOn("ext2"), "27bb7b02e1f4ce3c515c8b4dd4de87334a225202240c4abf3c3c1920e3429a7d"},
	{"ext4_results.csv", Averages, true, copiesOn("ext4"), "534b92879afd3c9231c32fb7f7515b6a2144745786525aeed349724f7c353bf0"},
	{"ext4_time_per_buffer_O_SYNC.csv", Averages, false, PublishedSynced, "8445fed4ed70a00f6141e63ec50c65dc33a90c44e980a35b8ae196f4e0210af2"},
	{"ext4_time_per_buffer_and_file_sizes.csv", Sizes, true, PublishedSizes, "78a85c6b3133010537abd3e8a3e27a078dbebad242fcfde185a5dd1e14b746d6"},
	{"jfs_results.csv", Averages, true, copiesOn("jfs"), "7391ed3b3b6fe367384637d1ce86fb6eaa155a81850438220ba395a250272f7a"},
	{"xfs_results.csv", Averages, true, copiesOn("xfs"), "ba448f4719f7768e178a2680cbf25fd8502ece1dfe3d8afb11f44842a80d45e5"},
}

func copiesOn(fileSystem string) func() []Row {
	return func() []Row {
		return slices.DeleteFunc(PublishedCopies(), func(r Row) bool { return r.FileSystem != fileSystem })
	}
}

func written(t *testing.T, l Layout, rows []Row) string {
	t.Helper()
	var b strings.Builder
	if err := WriteCSV(&b, l, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPublishedFilesAreWrittenToTheByte(t *testing.T) {
	for _, p := range originals {
		text := written(t, p.layout, p.rows())
		if p.noEnd {
			text = strings.TrimSuffix(text, "\n")
		}
		sum := sha256.Sum256([]byte(text))
		if got := hex.EncodeToString(sum[:]); got != p.sum {
			t.Errorf("%s: SHA-256 %s, want %s; we write\n%s", p.file, got, p.sum, text)
		}
	}
}

func TestWrittenTablesAreReadBack(t *testing.T) {
	for _, p := range originals {
		text := written(t, p.layout, p.rows())
		for _, form := range []string{text, strings.TrimSuffix(text, "\n"), strings.ReplaceAll(text, "\n", "\r\n")} {
			rows, err := ReadCSV(strings.NewReader(form), p.file)
			if err != nil {
				t.Fatal(err)
			}
			want := p.rows()
			for i := range want {
				want[i].Form = Copy // the head does not say it
				if p.layout != Named {
					want[i].FileSystem = ""
				}
				if p.layout != Sizes {
					want[i].FileSize = 0
				}
			}
			if !slices.Equal(rows, want) {
				t.Errorf("%s is read as\n%v\nwant\n%v", p.file, rows, want)
			}
		}
	}
}

func TestWholeRowsAreReadBackWhole(t *testing.T) {
	rows := slices.Concat(PublishedCopies(), PublishedWrites(), PublishedSynced(), PublishedSizes(), Book())
	rows = append(rows, Row{FileSystem: "ext4", FileSize: 3, Form: WriteSync, Buffer: 1, Elapsed: 1e-9, Predicted: true})
	got, err := ReadCSV(strings.NewReader(written(t, Whole, rows)), "whole.csv")
	if err != nil || !slices.Equal(got, rows) {
		t.Errorf("%v\n%v\nwant\n%v", err, got, rows)
	}
}

// TestOurFormStaysAsItIs: others read these files.
func TestOurFormStaysAsItIs(t *testing.T) {
	rows := []Row{
		{FileSystem: "ext4", FileSize: 100 * mib, Form: Copy, Buffer: 1, Elapsed: 187.123456789, CPU: 180.5, User: 60.25, System: 120.25, Predicted: true},
		{FileSystem: "uml-jfs", FileSize: 100 * mib, Form: Copy, Buffer: 1 << 20, Elapsed: .0538},
		{FileSystem: `a "quoted", name`, FileSize: mib, Form: DSynced, Buffer: 16284, Elapsed: 1e-9, CPU: 1e-9, System: 1e-9},
		{FileSystem: "xfs", FileSize: 32 * mib, Form: EachSync, Buffer: 4096, Elapsed: 12, CPU: 3, User: 1, System: 2},
	}
	want, err := os.ReadFile("testdata/timings.csv")
	if got := written(t, Whole, rows); err != nil || got != string(want) {
		t.Errorf("%v; we write\n%s", err, got)
	}
}

// TestWhatIsNotKnownIsEmpty in every layout, and is read as not known.
func TestWhatIsNotKnownIsEmpty(t *testing.T) {
	for _, l := range []Layout{Averages, Sizes, Script, Whole} {
		text := written(t, l, []Row{{FileSystem: "uml-jfs", FileSize: mib, Form: Copy, Buffer: 1, Elapsed: 2, CPU: 1, User: math.NaN(), System: math.NaN()}})
		if !strings.Contains(text, ",,") {
			t.Errorf("%s", text)
		}
		rows, err := ReadCSV(strings.NewReader(text), "uml-jfs_results.csv")
		if err != nil || len(rows) != 1 || rows[0].CPU != 1 || !math.IsNaN(rows[0].User) || !math.IsNaN(rows[0].System) {
			t.Errorf("%s is read as %v: %v", text, rows, err)
		}
	}
	if _, err := ReadCSV(strings.NewReader(Averages.Head()+"\n1,,1,1,1\n"), "x.csv"); err == nil {
		t.Error("a row has no elapsed time")
	}
}

func TestScriptOfTheWritesHasFourDecimalsCutOff(t *testing.T) {
	rows := []Row{{Buffer: 1, Elapsed: 28.2498, CPU: .00029999, User: 0, System: 1.59}, {Buffer: 65536, Elapsed: 7, CPU: .5, User: .00009, System: 120.00019}}
	want := "buffer_size,elapsed_time,total_cpu_time,user_cpu_time,system_cpu_time\n" +
		"1,28.2498,.0002,0,1.5900\n" +
		"65536,7.0000,.5000,0,120.0001\n"
	if got := written(t, Script, rows); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestQuotientIsWhatBcPrints: of echo "A/B" | bc -l.
func TestQuotientIsWhatBcPrints(t *testing.T) {
	check := func(x float64, want string) {
		t.Helper()
		if got := quotient(x, 20); got != want {
			t.Errorf("%v is %s, want %s", x, got, want)
		}
	}
	check(0.07865, ".07865000000000000000")
	check(0, "0")
	check(1e-21, "0")
	check(370.97345, "370.97345000000000000000")
	check(100, "100.00000000000000000000")
	check(0.000000001, ".00000000100000000000")
	check(-0.5, "-.50000000000000000000")
}

func TestValueThatIsNoneIsNamedWithFileAndLine(t *testing.T) {
	check := func(head, line, want string) {
		t.Helper()
		_, err := ReadCSV(strings.NewReader(head+"\n"+line), "ext4_results.csv")
		var wrong *RowError
		if !errors.As(err, &wrong) || err.Error() != want {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
	head := Averages.Head()
	check(head, "1,2,3,4,5\n2,1.0,x,3,4\n", `ext4_results.csv, line 3: "x": is not a number such as 12.5 or .0786`)
	check(head, "1,2,NaN,4,5\n", `ext4_results.csv, line 2: "NaN": is not a number such as 12.5 or .0786`)
	check(head, "1,2,-3,4,5\n", `ext4_results.csv, line 2: "-3": is not a number such as 12.5 or .0786`)
	check(head, "4k,2,3,4,5\n", `ext4_results.csv, line 2: "4k": is not the size of a buffer in bytes`)
	check(head, "1,2,3\n", `ext4_results.csv, line 2: "1,2,3": 3 values, where the head has 5`)
	check(Sizes.Head(), "big,1,2,3,4,5\n", `ext4_results.csv, line 2: "big": is not a number such as 12.5 or .0786`)
	check(Whole.Head(), "ext4,x,copy,1,2,3,4,5,true\n", `ext4_results.csv, line 2: "x": is not a number of bytes`)
}

func TestFileOfAnotherHeadIsRefused(t *testing.T) {
	for _, text := range []string{"", "\n", "a,b\n1,2\n", "1,2,3,4,5\n"} {
		if rows, err := ReadCSV(strings.NewReader(text), "x.csv"); !errors.Is(err, ErrHead) {
			t.Errorf("%q: %v, %v", text, rows, err)
		}
	}
}

func TestFormsOfWritesAreThoseThatReadNothing(t *testing.T) {
	for _, f := range Forms() {
		if f.Writes() != slices.Contains([]Form{Write, WriteSync, WriteData, EachData, EachSync}, f) {
			t.Errorf("%s: writes alone: %t", f, f.Writes())
		}
	}
}
