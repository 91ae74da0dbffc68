//go:build go1.25

package rotate

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// line is a record of n bytes.
func line(size int) []byte { return append(bytes.Repeat([]byte("x"), size-1), '\n') }

// TestMaxSizeToTheByte has the sizes of the files after records of some sizes, the oldest first and the log last.
func TestMaxSizeToTheByte(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(holdfast.KiB), holdfast.Durable()} {
		for _, c := range []struct {
			records, want []int
		}{
			{[]int{60, 39}, []int{99}},
			{[]int{60, 40}, []int{100, 0}},
			{[]int{60, 41}, []int{101, 0}},
			{[]int{100, 1}, []int{100, 1}},
			{[]int{101, 1}, []int{101, 1}},
			{[]int{250, 10, 250, 10}, []int{250, 260, 10}}, // a record is not split, however long
			{[]int{2000, 2000}, []int{2000, 2000, 0}},
		} {
			synctest.Test(t, func(t *testing.T) {
				d := newMemory(t)
				f := opened(t, d, Options{MaxSize: 100, Policy: p, OnError: func(e *Error) { t.Error(e) }})
				for _, size := range c.records {
					if n, err := f.Write(line(size)); n != size || err != nil {
						t.Fatal(n, err)
					}
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				files := logs(d.ProcessCrash())
				var got []int
				for _, name := range names(files) { // the log sorts behind its backups
					got = append(got, len(files[name]))
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%v: records of %v bytes are in files of %v, want %v", p, c.records, got, c.want)
				}
			})
		}
	}
}

// TestLogThatIsFullWhenItIsOpenedIsRotated also by one byte, and one that is not full is not.
func TestLogThatIsFullWhenItIsOpenedIsRotated(t *testing.T) {
	for text, want := range map[string]int64{
		string(line(99)): 0, string(line(100)): 1, string(line(101)): 1,
		strings.Repeat("x", 98): 0, strings.Repeat("x", 99): 1, // a line feed ends these
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			if err := d.WriteFile("/log/app.log", []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			f := opened(t, d, Options{MaxSize: 100})
			if err := f.Close(); err != nil || f.Stats().Rotations != want {
				t.Errorf("a log of %d bytes was rotated %d times, want %d: %v", len(text), f.Stats().Rotations, want, err)
			}
		})
	}
}

// backupsOf returns the files of a log but the log itself.
func backupsOf(d *memory) map[string][]byte {
	files := logs(d.ProcessCrash())
	delete(files, "app.log")
	return files
}

func TestMaxTotalToTheByte(t *testing.T) {
	text := bytes.Repeat([]byte("It is the same text again.\n"), 2000)
	days := []string{"29", "30", "31"}
	// left returns which days' backups stay under options.
	left := func(o Options, ext string) (stay []string, sizes []int) {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			for _, day := range days {
				if err := d.WriteFile("/log/app-1999-12-"+day+"T00-00-00.000.log", text, 0o640); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.WriteFile("/log/app.log", text, 0o640); err != nil { // which does not count
				t.Fatal(err)
			}
			o.OnError = func(e *Error) { t.Error(e) }
			f := opened(t, d, o)
			time.Sleep(time.Hour) // compression rests
			synctest.Wait()
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			files := backupsOf(d)
			for _, name := range names(files) {
				day, ok := strings.CutSuffix(strings.TrimPrefix(name, "app-1999-12-"), "T00-00-00.000.log"+ext)
				if !ok {
					t.Errorf("%s is left", name)
				}
				stay, sizes = append(stay, day), append(sizes, len(files[name]))
			}
			if n := f.Stats().Removed; int(n) != len(days)-len(stay) {
				t.Errorf("%d removed, and %v stay", n, stay)
			}
		})
		return stay, sizes
	}
	check := func(o Options, ext string, want ...string) {
		t.Helper()
		if got, _ := left(o, ext); !slices.Equal(got, want) {
			t.Errorf("MaxTotal %d, Compress %v: %v stay, want %v", o.MaxTotal, o.Compress, got, want)
		}
	}
	size := holdfast.Size(len(text))
	check(Options{MaxTotal: 3 * size}, "", "29", "30", "31")
	check(Options{MaxTotal: 3*size - 1}, "", "30", "31")
	check(Options{MaxTotal: size}, "", "31")
	check(Options{MaxTotal: size - 1}, "")

	_, sizes := left(Options{Compress: true}, packed)
	small := holdfast.Size(sizes[0])
	if small*20 > size {
		t.Fatalf("%d bytes are compressed to %d", size, small)
	}
	// A backup that waits for compression counts uncompressed, but for the newest.
	check(Options{Compress: true, MaxTotal: 2 * size}, packed, "29", "30", "31")
	check(Options{Compress: true, MaxTotal: 2*size - 1}, packed, "30", "31")
	check(Options{Compress: true, MaxTotal: size - 1}, packed, "31")
	check(Options{Compress: true, MaxTotal: small}, packed, "31")
	check(Options{Compress: true, MaxTotal: small - 1}, packed)
}

// TestCompressedBackupsCountAsTheyAre: a log that rotates for long has as many compressed backups as MaxTotal has room for.
func TestCompressedBackupsCountAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		f := opened(t, d, Options{Compress: true, MaxTotal: 1000, OnError: func(e *Error) { t.Error(e) }})
		var one int
		for range 30 {
			if _, err := f.Write(line(2000)); err != nil {
				t.Fatal(err)
			}
			if err := f.Rotate(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			total := 0
			for name, data := range backupsOf(d) {
				if !strings.HasSuffix(name, packed) {
					t.Errorf("%s is not compressed", name)
				}
				total, one = total+len(data), len(data)
			}
			if total > 1000 {
				t.Errorf("backups of %d bytes", total)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if got := len(backupsOf(d)); got != 1000/one || got < 10 {
			t.Errorf("%d backups of %d bytes stay of 30", got, one)
		}
	})
}

func TestOneBackupStays(t *testing.T) {
	for _, compress := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			f := opened(t, d, Options{MaxBackups: 1, Compress: compress, OnError: func(e *Error) { t.Error(e) }})
			for i := range 5 {
				if _, err := f.Write(record(0, i)); err != nil {
					t.Fatal(err)
				}
				if err := f.Rotate(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				files := backupsOf(d)
				files["app.log"] = nil
				all, err := text(files, false)
				if err != nil || len(files) != 2 || !bytes.Equal(all, record(0, i)) {
					t.Errorf("compress=%v: after rotation %d there is %q in %v, %v", compress, i, all, names(files), err)
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFilesThatOnlyLookLikeBackupsAreLeftAlone by every limit and by compression.
func TestFilesThatOnlyLookLikeBackupsAreLeftAlone(t *testing.T) {
	others := []string{
		"app-1999-12-31T00-00-00,000.log",        // a time for package time, and no name of ours
		"app-1999-12-31T00-00-00.000.log.bz2",    // another program's
		"app-1999-12-31T00-00-00.000.log.gz.old", //
		"app-1999-12-31T00-00-00.000.log.gz.part2",
		"app-1999-12-31T00-00-00.000.log.part",
		"app-1999-12-31T00-00-00.000.log~",
		"app-1999-12-31T00-00-00.000.logs",
		"app-1999-12-31T00-00-00.000",
		"app-1999-12-31T00-00-00.000.txt",
		"app-1999-12-31T00-00-00.000-1.log",
		"app-1999-12-31T00-00-00.log",
		"app-1999-12-31T00-00-00.0000.log",
		"app-1999-12-31 00-00-00.000.log",
		"app-1999-12-31T24-00-00.000.log",
		"app-1999-02-29T00-00-00.000.log", // no such day
		"app-web-1999-12-31T00-00-00.000.log",
		"app2-1999-12-31T00-00-00.000.log",
		"App-1999-12-31T00-00-00.000.log",
		"myapp-1999-12-31T00-00-00.000.log",
		"app.log.1", "app.log.gz", "app-.log", "app-", "app",
	}
	for _, o := range []Options{{MaxBackups: 1}, {MaxAge: 1}, {MaxTotal: 1}, {Compress: true}, {}} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			there := map[string][]byte{}
			for _, name := range others {
				there[name] = []byte(name)
				if err := d.WriteFile("/log/"+name, there[name], 0o640); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.MkdirAll("/log/app-1999-12-30T00-00-00.000.log"); err != nil {
				t.Fatal(err)
			}
			if err := d.WriteFile("/elsewhere", []byte("its own"), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := d.Symlink("/elsewhere", "/log/app-1999-12-29T00-00-00.000.log"); err != nil {
				t.Fatal(err)
			}
			o.OnError = func(e *Error) { t.Error(e) }
			f := opened(t, d, o)
			for i := range 3 {
				if _, err := f.Write(record(0, i)); err != nil {
					t.Fatal(err)
				}
				if err := f.Rotate(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			files := logs(d.ProcessCrash())
			for name, data := range there {
				if !bytes.Equal(files[name], data) {
					t.Errorf("%+v: %s is gone, or has %q", o, name, files[name])
				}
			}
			if data, err := d.ReadFile("/log/app-1999-12-29T00-00-00.000.log"); err != nil || string(data) != "its own" {
				t.Errorf("%+v: the link leads to %q, %v", o, data, err)
			}
			if is, err := d.StatPath("/log/app-1999-12-30T00-00-00.000.log\x00"); err != nil {
				t.Errorf("%+v: the directory: %+v, %v", o, is, err)
			}
		})
	}
}
