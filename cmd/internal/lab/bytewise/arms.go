package bytewise

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/cstdio"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/diy"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// The groups whose arms are compared, beside one for each direction and cache.
const (
	setvbufGroup   = "setvbuf"
	readAheadGroup = "read-ahead"
)

// bytesArms are every way from each cache, then stdio's modes and sizes on a
// cached file, then what the kernel reads ahead.
func bytesArms(c study.Choice) (arms []study.Arm) {
	caches := byteCaches(c)
	ways := byteWays()
	if c.DIY != "" {
		ways = append(ways[:len(programs)], yourWay(c.DIY))
	}
	for _, cache := range caches {
		for _, d := range []direction{toRead, toWrite} {
			for _, w := range ways {
				arms = append(arms, w.arm(c, d, cache, string(d)+" "+string(cache))...)
			}
		}
	}
	if c.DIY != "" {
		return arms // the exercise asks nothing further
	}
	for _, d := range []direction{toRead, toWrite} {
		for _, w := range setvbufWays(vbufSizes(c)) {
			arms = append(arms, w.arm(c, d, caches[len(caches)-1], setvbufGroup+" "+string(d))...)
		}
	}
	// The ways to read a file, with their advice to posix_fadvise. None of the file is cached.
	for _, a := range []access{{"normal", probe.Normal}, {"random", probe.Random}, {"sequential", probe.Sequential}} {
		w := byteWay{name: a.name, block: study.StdioBuffer, calls: map[direction]string{toRead: "bufio.Reader.ReadByte after posix_fadvise, " + a.name}}
		w.open = func(path string) (byteReader, error) {
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			if err := probe.AdviseAccess(f, a.Access); err != nil {
				return nil, errors.Join(err, f.Close())
			}
			return &goReader{goReads: bufioReads(f)}, nil
		}
		arm := w.arm(c, toRead, result.Cold, readAheadGroup)[0]
		arm.Name = accessArm(a.name)
		arms = append(arms, arm)
	}
	// One arm asks the kernel for a byte, and counts the pages that the kernel has read.
	return append(arms, study.Arm{
		Cell: result.Cell{
			Name: oneByte, Group: oneByte, Does: "read(2) of the first byte alone",
			RecordBytes: 1, Writers: 1, Records: 1, Cache: result.Cold,
		},
		Missing: study.CacheMissing(c, result.Cold), Elsewhere: study.CacheElsewhere(c, result.Cold), Time: 20 * time.Millisecond, Bytes: bytesCount,
		Task: func() trial.Task {
			t := readBytes(openWith(fileReads), 1, result.Cold)
			t.Make = patternFile(bytesCount)
			return t
		},
	})
}

// byteCaches are the states that a trial begins with: none of the file, and all.
// A user may ask for another than cold. Where the page cache can't be asked, the
// state is not known, and cold is reported as missing.
func byteCaches(c study.Choice) []result.Cache {
	switch {
	case c.NeverWarm != "":
		return study.Or([]result.Cache{result.Cold, result.TryCold}, nil)
	case c.Cache == "":
		return []result.Cache{result.Cold, result.Warm}
	}
	return study.Or([]result.Cache{c.Cache, result.Warm}, nil)
}

// vbufSizes returns the buffer sizes for setvbuf.
func vbufSizes(c study.Choice) (sizes []int) {
	if len(c.Buffers) == 0 {
		return []int{1, 512, 4096, 65536}
	}
	for _, b := range study.Or(c.Buffers, nil) {
		sizes = append(sizes, int(b))
	}
	return sizes
}

// bytesOf returns how many bytes a trial reads or writes. Ways with a system call a
// byte that the document does not have do fewer of them in a short run. An audit has
// all of no_buffering's only from one cache.
func bytesOf(c study.Choice, w byteWay, cache result.Cache) int64 {
	n := int64(bytesCount)
	if c.Count > 0 {
		n = c.Count
	}
	part := map[string]int64{study.PresetQuick: 16, study.PresetDefault: 4, study.PresetAudit: 4}[c.Preset.Name]
	if part == 0 || w.block >= 64 || w.name == noBuffering && (c.Preset.Name != study.PresetAudit || cache == result.Warm) {
		return n
	}
	return max(n/part, min(n, study.StdioBuffer))
}

// arm is the way in one direction from one state of the page cache, if it goes
// there.
func (w byteWay) arm(c study.Choice, d direction, cache result.Cache, group string) []study.Arm {
	if !w.can(d) {
		return nil
	}
	n := bytesOf(c, w, cache)
	missing, elsewhere := w.missing, ""
	if missing == "" {
		missing = study.CacheMissing(c, cache)
		elsewhere = study.CacheElsewhere(c, cache)
	}
	// A trial also makes its file and checks it.
	perCall := map[direction]time.Duration{toRead: 300, toWrite: 500}[d]
	return []study.Arm{{
		Cell: result.Cell{
			Name: byteArm(d, w.name, cache), Group: group, Does: w.calls[d],
			RecordBytes: 1, Writers: 1, Records: n, Cache: cache,
		},
		Missing: missing, Elsewhere: elsewhere, Time: 25*time.Millisecond + time.Duration(n)*15 + time.Duration(w.systemCalls(n))*perCall, Bytes: 2 * n, Room: n,
		Task: func() trial.Task { return w.task(d, n, cache) },
	}}
}

func (w byteWay) task(d direction, n int64, cache result.Cache) trial.Task {
	if w.source != "" {
		return w.yourTask(d, n, cache)
	}
	if d == toRead {
		return readBytes(w.open, n, cache)
	}
	return writeBytes(w.over, n, cache)
}

// readBytes reads a file of n bytes.
func readBytes(open func(string) (byteReader, error), n int64, cache result.Cache) trial.Task {
	var got int64
	var sum cstdio.Sum
	return trial.Task{
		Make: patternFile(n), Cache: cache,
		Do: func(_ context.Context, c *trial.Clock) error {
			f, err := open(c.Path)
			if err != nil {
				return err
			}
			c.Lap(trial.Open)
			got, err = f.Read(n)
			c.Lap(trial.Read)
			sum = f.Sum()
			c.Start()
			err = errors.Join(err, f.Close())
			c.Lap(trial.Close)
			tellCached(c)
			return err
		},
		Check: func(string) error {
			if got != n {
				return &trial.ContentError{Offset: got, Reason: fmt.Sprintf("the reading ends, of %d bytes", n)}
			}
			if sum != cstdio.PatternSum(n) {
				return &trial.ContentError{Reason: "begins what was read, and its sum is wrong"}
			}
			return nil
		},
	}
}

// writeBytes overwrites the first n bytes of a file.
func writeBytes(over func(string) (byteWriter, error), n int64, cache result.Cache) trial.Task {
	return trial.Task{
		// Not one byte of the file is right before the trial.
		Make: func(path string) error {
			return trial.NewFile(path, n, func(block []byte) {
				for i := range block {
					block[i] = blank
				}
			})
		}, Cache: cache,
		Do: func(_ context.Context, c *trial.Clock) error {
			f, err := over(c.Path)
			if err != nil {
				return err
			}
			c.Lap(trial.Open)
			_, err = f.Write(n)
			c.Lap(trial.Write)
			err = errors.Join(err, f.Flush())
			c.Lap(trial.Flush)
			err = errors.Join(err, f.Close())
			c.Lap(trial.Close)
			tellCached(c)
			return err
		},
		Check: func(path string) error { return isPattern(path, n) },
	}
}

// The part of the file in the page cache after the trial, in bytes of whole pages.
const (
	pagesAfter = "cached_after_pages"
	bytesAfter = "cached_after_bytes"
)

func tellCached(c *trial.Clock) {
	if r := c.Cached(); r.Pages > 0 {
		c.Tell(pagesAfter, float64(r.Resident))
		c.Tell(bytesAfter, float64(r.Resident*int64(os.Getpagesize())))
	}
}

// patternFile makes what is read.
func patternFile(n int64) func(path string) error {
	return func(path string) error {
		at := int64(0)
		return trial.NewFile(path, n, func(block []byte) {
			cstdio.Fill(block, at)
			at += int64(len(block))
		})
	}
}

// blank is a byte that the pattern has nowhere.
const blank = cstdio.Period

// isPattern checks that a file is n bytes of the pattern.
func isPattern(path string, n int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	got, want := make([]byte, 64<<10), make([]byte, 64<<10)
	r := bufio.NewReader(f)
	for at := int64(0); ; {
		k, err := io.ReadFull(r, got)
		cstdio.Fill(want[:k], at)
		if i := firstDifference(got[:k], want[:k]); i < k {
			return &trial.ContentError{Offset: at + int64(i), Reason: fmt.Sprintf("stands %d, and %d was written", got[i], want[i])}
		}
		at += int64(k)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return fmt.Errorf("read back: %w", err)
			}
			if at != n {
				return &trial.ContentError{Offset: at, Reason: fmt.Sprintf("the file ends, and %d bytes were written", n)}
			}
			return nil
		}
	}
}

func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return len(a)
	}
	i := 0
	for a[i] == b[i] {
		i++
	}
	return i
}

func accessArm(name string) string { return readAheadGroup + "/" + name }

// oneByte is the name of the arm that reads the first byte of a file alone.
const oneByte = readAheadGroup + "/one byte"

// byteWays are all of them; the first three are the document's programs.
func byteWays() []byteWay {
	c := []byteWay{
		inC(noBuffering, 1, cstdio.Setup{Method: cstdio.Raw, Mode: cstdio.None}),
		inC(libcBuffering, study.StdioBuffer, cstdio.Setup{Method: cstdio.Fread}),
		inC(diyBuffering, study.StdioBuffer, cstdio.Setup{Method: cstdio.DFread}),
		inC("libc_fgetc", study.StdioBuffer, cstdio.Setup{Method: cstdio.Fgetc}),
		inC("libc_unlocked", study.StdioBuffer, cstdio.Setup{Method: cstdio.GetcUnlocked}),
		inC("diy_dfgetc", study.StdioBuffer, cstdio.Setup{Method: cstdio.DFgetc}),
	}
	return append(c, goWays...)
}

// inC is a way whose loop is wholly in C.
func inC(name string, block int64, s cstdio.Setup) byteWay {
	s.Keep = true
	return byteWay{
		name: name, block: block, missing: cstdio.Missing(),
		calls: map[direction]string{toRead: s.Method.Reads(), toWrite: s.Method.Writes()},
		open:  func(path string) (byteReader, error) { return cstdio.Open(path, s) },
		over:  func(path string) (byteWriter, error) { return cstdio.Create(path, s) },
	}
}

// setvbufWays are stdio's modes and sizes of buffer.
func setvbufWays(sizes []int) []byteWay {
	ways := []byteWay{inMode(cstdio.None.String(), 1, cstdio.Setup{Method: cstdio.Fread, Mode: cstdio.None})}
	for _, mode := range []cstdio.Mode{cstdio.Line, cstdio.Full} {
		for _, size := range sizes {
			name := fmt.Sprintf("%v,%d", mode, size)
			ways = append(ways, inMode(name, int64(size), cstdio.Setup{Method: cstdio.Fread, Mode: mode, Buffer: size}))
		}
	}
	return ways
}

// inMode is a way of stdio that says by its name what setvbuf was given.
func inMode(name string, block int64, s cstdio.Setup) byteWay {
	w := inC(name, block, s)
	for d, call := range w.calls {
		w.calls[d] = call + " after setvbuf " + name
	}
	return w
}

// yourWay is a student's functions in a C file.
func yourWay(source string) byteWay {
	w := inC(yours, study.StdioBuffer, cstdio.Setup{Method: cstdio.DFread})
	w.source, w.missing = source, diy.Missing()
	w.calls = map[direction]string{toRead: "diy_fread of " + source, toWrite: "diy_fwrite of " + source}
	return w
}

// yourTask runs the student's program, which takes its own times. The first trial makes it.
func (w byteWay) yourTask(d direction, n int64, cache result.Cache) trial.Task {
	t := writeBytes(nil, n, cache)
	if d == toRead {
		t = readBytes(nil, n, cache)
	}
	var program string
	made, check := t.Make, t.Check
	t.Make = func(path string) error {
		program = filepath.Join(filepath.Dir(path), yourProgram)
		if _, err := os.Stat(program); errors.Is(err, os.ErrNotExist) {
			if err := diy.Build(context.Background(), w.source, program); err != nil {
				return err
			}
		}
		return made(path)
	}
	var got diy.Timing
	t.Do = func(ctx context.Context, c *trial.Clock) (err error) {
		if got, err = diy.Time(ctx, program, string(d), c.Path, n); err != nil {
			return err
		}
		c.Took(trial.Open, got.Open)
		c.Took(map[direction]trial.Stage{toRead: trial.Read, toWrite: trial.Write}[d], got.Calls)
		c.Took(trial.Close, got.Close)
		tellCached(c)
		return nil
	}
	t.Check = func(path string) error {
		if d == toWrite {
			return check(path)
		}
		if sum := (cstdio.Sum{Ones: got.Ones, Twos: got.Twos}); got.Made != n || sum != cstdio.PatternSum(n) {
			return &trial.ContentError{Offset: got.Made, Reason: "the reading ends, or its sum is wrong"}
		}
		return nil
	}
	return t
}

// yourProgram is the student's program in the work directory, which is removed with it.
const yourProgram = "read-by-all-0"
