//go:build go1.25

package catalogue

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// TestALogIsReadWithItsBackups: what is judged is the records of all its files, in the order of their names.
func TestALogIsReadWithItsBackups(t *testing.T) {
	line := func(id uint32, n uint64) []byte {
		return append(crash.Record{ID: id, N: n, Size: 60}.Append(nil), '\n')
	}
	torn := line(0, 9)[:40]
	packed := func(data []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(data) // a buffer takes all
		z.Close()
		return b.Bytes()
	}
	const first, second = "app-2000-01-01T00-00-00.000.log", "app-2000-01-01T00-00-00.001.log"
	for _, c := range []struct {
		name     string
		there    map[string][]byte
		want     []uint64 // records of the writers 0 and 1
		disorder bool
	}{
		{"nothing", nil, []uint64{0, 0}, false},
		{"the log alone", map[string][]byte{"app.log": slices.Concat(line(0, 0), line(1, 0), line(0, 1))}, []uint64{2, 1}, false},
		{"a backup of each kind", map[string][]byte{first + ".gz": packed(line(0, 0)), second: slices.Concat(line(0, 1), line(1, 0)), "app.log": line(0, 2)}, []uint64{3, 1}, false},
		{"one that is packed in memory", map[string][]byte{first + packedInMemory: packed(line(0, 0)), second: line(0, 1), second + packedInMemory: []byte("half")}, []uint64{2, 0}, false},
		{"one that is being compressed", map[string][]byte{first: line(0, 0), first + ".gz": []byte("half"), second: line(0, 1), second + ".gz.part": []byte("half")}, []uint64{2, 0}, false},
		{"a compressed one that is torn", map[string][]byte{first + ".gz": packed(line(0, 0))[:20], "app.log": line(0, 1)}, []uint64{0, 0}, false},
		{"a torn record that was ended", map[string][]byte{"app.log": slices.Concat(line(0, 0), torn, []byte{'\n'}, line(0, 1))}, []uint64{2, 0}, false},
		{"one that is glued to a torn one", map[string][]byte{"app.log": slices.Concat(torn, line(0, 0), line(1, 0))}, []uint64{0, 1}, false},
		{"one behind a lost sector", map[string][]byte{"app.log": slices.Concat(make([]byte, sector), line(0, 0), line(1, 0))}, []uint64{1, 1}, false},
		{"one that is missing", map[string][]byte{first: line(0, 0), "app.log": slices.Concat(line(0, 2), line(0, 3))}, []uint64{1, 0}, false},
		{"one that is missing, and written again", map[string][]byte{"app.log": slices.Concat(line(0, 0), line(0, 2), line(0, 1), line(0, 2))}, []uint64{3, 0}, false},
		{"one that occurs twice", map[string][]byte{first: slices.Concat(line(0, 0), line(0, 1)), "app.log": slices.Concat(line(0, 1), line(0, 2))}, []uint64{4, 0}, true},
		{"of the wrong backup first", map[string][]byte{first: line(0, 1), second: line(0, 0)}, []uint64{1, 0}, false},
		{"another log's", map[string][]byte{"other.log": line(0, 0)}, []uint64{0, 0}, false},
	} {
		dir := t.TempDir()
		for name, data := range c.there {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		found, err := crash.Survey(dir, logTargets(logWriters)(holdfast.Durable())[:2])
		if err != nil || !slices.Equal(found.N, c.want) || found.Disorder[0] != c.disorder {
			t.Errorf("%s: %v records, in disorder %v, %v; want %v and %v", c.name, found.N, found.Disorder, err, c.want, c.disorder)
		}
	}
}

// TestALogInTwoDirectoriesIsOneLog: an attack has led the log to another directory and back.
func TestALogInTwoDirectoriesIsOneLog(t *testing.T) {
	line := func(n uint64) []byte { return append(crash.Record{N: n, Size: 60}.Append(nil), '\n') }
	one, two := t.TempDir(), t.TempDir()
	for name, data := range map[string][]byte{one + "/app.log": slices.Concat(line(0), line(2)), two + "/app.log": line(1), two + "/app-2000-01-01T00-00-00.000.log": line(3)} {
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	first, err := crash.Files(one)
	second, secondErr := crash.Files(two)
	data := gatherLog(first, second)
	if want := 4 * len(crash.Record{Size: 60}.Append(nil)); err != nil || secondErr != nil || len(data) != want {
		t.Errorf("%d bytes, %v, %v; want the %d of four records", len(data), err, secondErr, want)
	}
}
