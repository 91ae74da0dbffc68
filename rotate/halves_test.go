//go:build go1.25

package rotate

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// on returns a disk that has these files of a log.
func on(t *testing.T, files map[string][]byte) *memory {
	t.Helper()
	d := newMemory(t)
	for name, data := range files {
		if err := d.WriteFile("/log/"+name, data, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// A shouter compresses nothing: it writes capitals, and how it was closed.
type shouter struct {
	to     io.Writer
	closed *int
}

func (s shouter) Write(p []byte) (int, error) { return s.to.Write(bytes.ToUpper(p)) }

func (s shouter) Close() error {
	*s.closed++
	_, err := s.to.Write([]byte("END"))
	return err
}

func TestBackupsAreCompressedByAnother(t *testing.T) {
	for _, fails := range []string{"", "New", "Write", "Close"} {
		t.Run(fails, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const one, two, three = "app-1999-12-31T00-00-00.000.log", "app-1999-12-30T00-00-00.000.log", "app-1999-12-29T00-00-00.000.log"
				d := on(t, map[string][]byte{one: []byte("one\n"), one + ".x.part": []byte("ON"), two + ".x": []byte("TWOEND"), three + ".gz": nil})
				made, closed, heard := 0, 0, 0
				o := Options{Compress: true, MaxBackups: 2, OnError: func(*Error) { heard++ }}
				o.Compressor = Compressor{".x", func(w io.Writer) (io.WriteCloser, error) {
					if fails == "New" {
						return nil, errors.New("it has no form")
					}
					made++
					return shouter{w, &closed}, nil
				}}
				switch fails {
				case "Write":
					d.Add(fault.DiskFault{Op: fault.DiskWrite, Path: "*.part", Times: 1, Err: syscall.EIO})
				case "Close":
					d.Add(fault.DiskFault{Op: fault.DiskWrite, Path: "*.part", First: 2, Times: 1, Err: syscall.EIO})
				}
				f := opened(t, d, o)
				synctest.Wait()
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				want := map[string][]byte{one + ".x": []byte("ONE\nEND"), two + ".x": []byte("TWOEND")}
				if fails != "" {
					want = map[string][]byte{one: []byte("one\n"), two + ".x": []byte("TWOEND")}
					if fails == "New" {
						made++
						closed++
					}
				}
				got := backupsOf(d)
				if !maps.EqualFunc(got, want, bytes.Equal) || made != 1 || closed != 1 || (heard == 1) != (fails != "") {
					t.Errorf("%q; made %d, closed %d, heard %d", got, made, closed, heard)
				}
			})
		})
	}
}

// A lazy compressor takes a second for each piece that it is given.
type lazy struct{ io.Writer }

func (s lazy) Write(p []byte) (int, error) {
	time.Sleep(time.Second)
	return s.Writer.Write(p)
}

func (lazy) Close() error { return nil }

// TestACompressionRestsForAsLongAsItWorks, so that it takes half of a CPU. Its progress is reported meanwhile.
func TestACompressionRestsForAsLongAsItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "app-1999-12-31T00-00-00.000.log"
		d := on(t, map[string][]byte{name: make([]byte, 10*packChunk)})
		f := opened(t, d, Options{Compress: true, Compressor: Compressor{".x", func(w io.Writer) (io.WriteCloser, error) { return lazy{w}, nil }}})
		began := time.Now()
		for seconds := range 20 {
			time.Sleep(time.Until(began.Add(time.Duration(seconds)*time.Second + 500*time.Millisecond)))
			s := f.Stats()
			if done := int64((seconds + 1) / 2 * packChunk); s.Compressing != name || s.CompressedBytes != done || s.CompressingSize != 10*packChunk || s.Compressed != 0 {
				t.Fatalf("after %d seconds: %d bytes of %q, %d; want %d", seconds, s.CompressedBytes, s.Compressing, s.CompressingSize, done)
			}
		}
		time.Sleep(time.Second)
		if s := f.Stats(); s.Compressing != "" || s.Compressed != 1 {
			t.Errorf("in the end: %q, %d", s.Compressing, s.Compressed)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestABackupStaysWhereTheNameOfTheCompressedOneMayBeLost: a sync of the directory fails elsewhere, just when it has its name.
func TestABackupStaysWhereTheNameOfTheCompressedOneMayBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "app-1999-12-31T00-00-00.000.log"
		d, heard := on(t, map[string][]byte{name: []byte("record\n")}), 0
		var log atomic.Pointer[File]
		d.Watch(func(c fault.DiskCall) {
			if c.Op != fault.DiskRename || c.End.IsZero() {
				return
			}
			d.Watch(nil)
			for log.Load() == nil {
				time.Sleep(time.Millisecond)
			}
			f := log.Load()
			f.names.Fail(f.current.Load().file.key)
		})
		f := opened(t, d, Options{Compress: true, OnError: func(e *Error) { heard++ }})
		log.Store(f)
		time.Sleep(time.Second)
		synctest.Wait()
		if files := backupsOf(d); string(files[name]) != "record\n" || heard != 1 {
			t.Errorf("%q; heard of %d failures", names(files), heard)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestNoLinkIsFollowedToCompress: it came just before the file that is written to.
func TestNoLinkIsFollowedToCompress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "app-1999-12-31T00-00-00.000.log"
		d := on(t, map[string][]byte{name: []byte("record\n")})
		if err := d.WriteFile("/victim", []byte("its own"), 0o644); err != nil {
			t.Fatal(err)
		}
		planted := 0
		d.Watch(func(c fault.DiskCall) {
			if c.Op != fault.DiskRemove || !strings.HasSuffix(c.Path, partly) || c.End.IsZero() {
				return
			}
			if planted++; planted == 1 {
				if err := d.Symlink("/victim", c.Path); err != nil {
					t.Error(err)
				}
			}
		})
		f := opened(t, d, Options{Compress: true})
		synctest.Wait()
		if got, _ := d.ReadFile("/victim"); planted == 0 || string(got) != "its own" {
			t.Errorf("%d removals, and where the link leads stands %q", planted, got)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWhatAKilledCompressionLeavesIsFinishedAtOnce by the next Open, whatever its options are, and no time passes.
func TestWhatAKilledCompressionLeavesIsFinishedAtOnce(t *testing.T) {
	const plain, whole, part = "app-1999-12-31T00-00-00.000.log", "app-1999-12-31T00-00-00.000.log" + packed, "app-1999-12-31T00-00-00.000.log" + packed + partly
	text := bytes.Repeat([]byte("a line of the log\n"), 100)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(text) // a buffer takes all
	z.Close()
	all := b.Bytes()
	half := all[:len(all)/2]
	for _, c := range []struct {
		name  string
		there map[string][]byte
		stays bool // the backup
	}{
		{"the new file is made", map[string][]byte{plain: text, part: nil}, true},
		{"a half is written", map[string][]byte{plain: text, part: half}, true},
		{"all is written", map[string][]byte{plain: text, part: all}, true},
		{"it has its name", map[string][]byte{plain: text, whole: all}, true},
		{"the backup is gone", map[string][]byte{whole: all}, true},
		{"killed again while it made it again", map[string][]byte{plain: text, whole: all, part: half}, true},
		{"a half, and the backup is gone", map[string][]byte{part: half}, false},
		{"nothing, and the backup is gone", map[string][]byte{part: nil}, false},
		{"all, and the backup is gone", map[string][]byte{part: all}, false},
		{"a half beside a whole one, and the backup is gone", map[string][]byte{whole: all, part: half}, true},
		{"a half under the whole one's name, as lumberjack leaves it", map[string][]byte{plain: text, whole: half}, true},
	} {
		for _, o := range []Options{{}, {Compress: true}, {MaxBackups: 1}, {MaxTotal: holdfast.KiB, Compress: true}, {MaxAge: 25 * time.Hour}} {
			t.Run(fmt.Sprintf("%s %+v", c.name, o), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := on(t, c.there)
					began := time.Now()
					o.OnError = func(e *Error) { t.Error(e) }
					f := opened(t, d, o)
					synctest.Wait()
					if err := f.Close(); err != nil || !time.Now().Equal(began) {
						t.Error(err, time.Since(began))
					}
					files := backupsOf(d)
					if !c.stays {
						if len(files) > 0 || f.Stats().Removed > 0 || f.Stats().Compressed > 0 {
							t.Errorf("%v is left: %+v", names(files), f.Stats())
						}
						return
					}
					z, err := gzip.NewReader(bytes.NewReader(files[whole]))
					if err != nil || len(files) != 1 {
						t.Fatalf("%v is left: %v", names(files), err)
					}
					var got bytes.Buffer
					if _, err := got.ReadFrom(z); err != nil || !bytes.Equal(got.Bytes(), text) {
						t.Errorf("%d bytes of %d are left, %v", got.Len(), len(text), err)
					}
				})
			})
		}
	}
}

// TestEachCallOfACompressionMayBeTheLast kills the process, and cuts the power, at each call of a rotation with a compression.
// The next Open finishes such a file at once.
func TestEachCallOfACompressionMayBeTheLast(t *testing.T) {
	var images []map[string][]byte
	l := ledger{}
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		f := opened(t, d, Options{Compress: true, Policy: holdfast.Durable()})
		l.put(t, f, 50)
		synctest.Wait()
		var one sync.Mutex // the log and its background make calls
		d.Watch(func(c fault.DiskCall) {
			one.Lock()
			defer one.Unlock()
			images = append(images, logs(d.ProcessCrash()))
			for i := range uint64(3) {
				images = append(images, logs(d.PowerCut(rand.New(rand.NewPCG(uint64(len(images)), i)))))
			}
		})
		if err := f.Rotate(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		d.Watch(nil)
		l.closed(t, d, f)
	})
	halves := 0
	for i, image := range images {
		for _, o := range []Options{{}, {Compress: true}} {
			synctest.Test(t, func(t *testing.T) {
				d := on(t, maps.Clone(image))
				o.OnError = func(e *Error) { t.Error(e) }
				f := opened(t, d, o)
				synctest.Wait()
				files := l.closed(t, d, f)
				for name := range image {
					if strings.HasSuffix(name, partly) {
						halves++
					}
				}
				for name := range files {
					_, both := files[strings.TrimSuffix(name, packed)]
					if strings.HasSuffix(name, partly) || strings.HasSuffix(name, packed) && both {
						t.Errorf("crash %d with %v: %s is left", i, names(image), name)
					}
				}
			})
		}
		if t.Failed() {
			return
		}
	}
	if len(images) < 100 || halves < 20 {
		t.Errorf("the test proves little: %d crashes, %d with a half compressed file", len(images), halves)
	}
}

// TestNoCrashLeavesALineTwice, also where no sync keeps the backup's name: the compressed one must not come before it, nor at all where a
// failed sync has lost that name.
func TestNoCrashLeavesALineTwice(t *testing.T) {
	isolate.Once(t) // nearly all of it is power cuts of a simulated disk
	t.Run("all syncs succeed", func(t *testing.T) { neverTwice(t, false) })
	t.Run("the first fails", func(t *testing.T) { neverTwice(t, true) })
}

func neverTwice(t *testing.T, fails bool) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		heard := 0
		f := opened(t, d, Options{Compress: true, Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncNever}}, OnError: func(*Error) { heard++ }})
		rotated := func() {
			l.put(t, f, 20)
			if err := f.Rotate(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Minute)
		}
		var one sync.Mutex // the log and its background make calls
		packedOnes := 0
		d.Watch(func(c fault.DiskCall) {
			one.Lock()
			defer one.Unlock()
			if c.Op != fault.DiskSync && c.Op != fault.DiskRemove {
				return
			}
			for seed := range uint64(1000) { // few of them keep a name without those before it
				files := logs(d.PowerCut(rand.New(rand.NewPCG(seed, 0))))
				all, err := text(files, true)
				if err != nil {
					t.Error(err)
				}
				for n := range l[0] {
					if many := bytes.Count(all, record(0, n)); many > 1 && !t.Failed() {
						t.Errorf("after %v of %s, record %d is there %d times, in %v", c.Op, c.Path, n, many, names(files))
					}
				}
				for name := range files {
					if strings.HasSuffix(name, packed) {
						packedOnes++
					}
				}
			}
		})
		rotated()
		if fails { // the next file has its name on the disk now
			d.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/log", Times: 1, Err: syscall.EIO})
		}
		rotated()
		rotated()
		d.Watch(nil)
		files := l.closed(t, d, f)
		if packedOnes < 20 || (heard == 1) != fails {
			t.Errorf("only %d crashes left a compressed file; %d errors; in the end %v", packedOnes, heard, names(files))
		}
	})
}

// TestAFailedSyncLeavesTheLastBackupAName: a process was killed between the rename of its rotation and the sync of the directory,
// and the next one's sync of it fails. On the disk the backup has the log's name, which a new file must not take.
func TestAFailedSyncLeavesTheLastBackupAName(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		d := newMemory(t)
		f := opened(t, d, Options{Policy: holdfast.Durable(), Compress: compressed})
		l := ledger{}
		l.put(t, f, 20)
		l.closed(t, d, f)
		if err := d.Disk.Move("/log/app.log", "/log/app-2026-11-28T12-00-00.000.log"); err != nil {
			t.Fatal(err)
		}
		d.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/log", Times: 1, Err: syscall.EIO})
		next, err := open(d, "/log/app.log", Options{Policy: holdfast.Durable(), Compress: compressed}, false)
		if err == nil {
			for range 20 {
				if _, err := next.Write(record(0, l[0])); err != nil {
					break
				}
				l[0]++
			}
		}
		for seed := range uint64(50) {
			if err := l.holds(logs(d.PowerCut(rand.New(rand.NewPCG(seed, 0))))); err != nil {
				t.Errorf("compressed %v: %v", compressed, err)
				break
			}
		}
		if next != nil {
			next.Close()
		}
	}
}
