package study

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// copyClaims are the claims of a repetition of TLPI's exercise 13-1: a file copied
// by read(2) and write(2) with buffers of many sizes, on several file systems, and
// with O_SYNC. An audit tests them on the file system that it is given.
//
// In the clock: the loop of read and write, from a file that is in the page cache;
// open and close are stages of their own. Of O_SYNC it is the writes alone, of a
// few records: the whole file would take the half hour that was published.
func copyClaims() Study {
	return Study{
		Name:     "copy",
		Question: "what does the size of the buffer do to a copy, on this file system",
		Source:   copyBufferSizes,
		Arms:     copyArms,
		Claims: []Claim{
			copyLarger(), copySlip(), copyBtrfs(), copyExt4(), copyJFS(), copyUser(), copySystem(), copySyncLarger(), copySyncByte(), copySyncAverage(),
		},
	}
}

// oddBuffer is the original's slip for 16384: every write but the first of four
// begins within a page.
const oddBuffer = 16284

func copyArm(buffer int) string   { return fmt.Sprintf("copy %v", holdfast.Size(buffer)) }
func syncArm(record int64) string { return fmt.Sprintf("O_SYNC %v", holdfast.Size(record)) }

func copyArms(c Choice) []Arm {
	var arms []Arm
	for _, buffer := range []int{1, 512, 4096, oddBuffer, 16384, 65536} {
		size := int64(16 << 20)
		if buffer == 1 {
			size = 128 << 10 // a whole file would take a minute
		}
		arms = append(arms, Arm{
			Cell:  result.Cell{Name: copyArm(buffer), Group: "copy", Does: fmt.Sprintf("read(2) and write(2) of %d bytes", buffer), Records: size, RecordBytes: 1},
			Time:  120 * time.Millisecond,
			Bytes: 2 * size,
			Task:  func() trial.Task { return copyTask(size, buffer) },
		})
	}
	records := int64(20)
	if c.Preset.Full {
		records = 200
	}
	for _, record := range []int64{1, 2, 4096} {
		arms = append(arms, Arm{
			Cell: result.Cell{Name: syncArm(record), Group: "O_SYNC", Does: fmt.Sprintf("write(2) of %d bytes with O_SYNC", record), Records: records, RecordBytes: record},
			Time: time.Duration(records) * 2 * time.Millisecond,
			Task: func() trial.Task {
				return trial.Task{Do: writeSynced(records, record), Check: holdsZeros(records * record)}
			},
		})
	}
	return arms
}

// copyTask copies a file of random bytes that is in the page cache.
func copyTask(size int64, buffer int) trial.Task {
	random := rand.NewChaCha8([32]byte{})
	fill := func(block []byte) { _, _ = random.Read(block) } // it never fails
	return trial.Task{
		Make:   func(path string) error { return makeIn(path, "source", size, fill) },
		Writes: size,
		Do:     func(_ context.Context, c *trial.Clock) error { return copyFile(c, buffer) },
		Check:  func(path string) error { return sameFiles(path+"/source", path+"/copy") },
	}
}

// makeIn makes a folder at path and a file in it.
func makeIn(path, name string, size int64, fill func([]byte)) error {
	if err := os.Mkdir(path, 0o777); err != nil {
		return err
	}
	return trial.NewFile(path+"/"+name, size, fill)
}

func copyFile(c *trial.Clock, buffer int) error {
	b := make([]byte, buffer)
	c.Start()
	from, err := os.Open(c.Path + "/source")
	if err != nil {
		return err
	}
	to, err := os.Create(c.Path + "/copy")
	if err != nil {
		return errors.Join(err, from.Close())
	}
	c.Lap(trial.Open)
	err = copyLoop(to, from, b)
	c.Lap(trial.Write)
	err = errors.Join(err, from.Close(), to.Close())
	c.Lap(trial.Close)
	return err
}

// copyLoop is read and write and nothing else: io.Copy would have the kernel copy.
func copyLoop(to io.Writer, from io.Reader, b []byte) error {
	for {
		n, err := from.Read(b)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := to.Write(b[:n]); err != nil {
			return err
		}
	}
}

func sameFiles(a, b string) error {
	want, err := os.ReadFile(a)
	if err != nil {
		return err
	}
	got, err := os.ReadFile(b)
	if err == nil && !bytes.Equal(got, want) {
		err = &trial.ContentError{Reason: "the copy differs from its source"}
	}
	return err
}

// writeSynced writes records of zeros, each on the disk before the next.
func writeSynced(records, size int64) func(context.Context, *trial.Clock) error {
	return func(ctx context.Context, c *trial.Clock) error {
		record := make([]byte, size)
		c.Start()
		f, err := os.OpenFile(c.Path, os.O_WRONLY|os.O_CREATE|os.O_SYNC, 0o666)
		if err != nil {
			return err
		}
		c.Lap(trial.Open)
		for i := int64(0); i < records && err == nil && ctx.Err() == nil; i++ {
			_, err = f.Write(record)
		}
		c.Lap(trial.Write)
		return errors.Join(err, f.Close())
	}
}

func holdsZeros(size int64) func(path string) error {
	return func(path string) error {
		got, err := os.ReadFile(path)
		if err == nil && (int64(len(got)) != size || len(bytes.Trim(got, "\x00")) > 0) {
			err = &trial.ContentError{Reason: fmt.Sprintf("the file is not %d zeros", size)}
		}
		return err
	}
}

// written is the time of the loop alone, for a byte.
func written(t result.Trial) float64 { return float64(t.Write) / float64(t.Records) }

// userShare is the part of the CPU time that was spent in user mode.
func userShare(t result.Trial) float64 { return float64(t.User) / float64(t.User+t.System) }

// onFileSystem judges only where the folder is on that file system.
func onFileSystem(name, folder string, judge func(Evidence) Finding) func(Evidence) Finding {
	return func(e Evidence) Finding {
		if found := e.Fact("file system"); found != name {
			return Finding{Verdict: NotChecked, Why: fmt.Sprintf("it is said of %s, and this folder is on %s", name, found), Settle: "--dir " + folder}
		}
		return judge(e)
	}
}

func copyLarger() Claim {
	return Claim{
		Name: "copy-larger", Source: copyBufferSizes, Says: "a bigger buffer performs better", Published: "512 B before 4096 B before 65536 B",
		Arms: []string{copyArm(512), copyArm(4096), copyArm(65536)},
		Judge: func(e Evidence) Finding {
			first := ratio(e.Ratio(copyArm(512), copyArm(4096), written))
			second := ratio(e.Ratio(copyArm(4096), copyArm(65536), written))
			worse := first
			if second.low < first.low {
				worse = second
			}
			return worse.judge(atLeast(1), NotHere, "each step up to 64 KiB saves time", "a step up costs time here")
		},
	}
}

// userOf8MB is the user CPU time of a copy of 8 MB, the least size of which it is
// said.
func userOf8MB(t result.Trial) float64 { return float64(t.User) / float64(t.Size) * 8e6 }

func copySlip() Claim {
	return Claim{
		Name: "copy-user-16284", Source: copyBufferSizes, Says: "from 8 MB on user time is near zero for a buffer of 16284 bytes, unlike others", Published: "0 s, by a clock of 1 ms",
		Arms: []string{copyArm(oddBuffer), copyArm(16384)},
		Judge: func(e Evidence) Finding {
			odd, even := figure(e.Summary(copyArm(oddBuffer), userOf8MB), duration), figure(e.Summary(copyArm(16384), userOf8MB), duration)
			f := Finding{Measured: fmt.Sprintf("%v; 16384 bytes: %v", odd, even)}
			const clock = float64(time.Millisecond)
			zero := atMost(clock)
			switch a, b := zero.place(odd.low, odd.high), zero.place(even.low, even.high); {
			case a == inside && b == inside:
				f.Verdict, f.Why = NeverSo, "both take less than the 1 ms that its clock could tell; and 16284 is a slip for 16384"
			case a == inside && b == outside:
				f.Verdict, f.Why = Holds, "16384 bytes take more than 1 ms"
			case a == outside:
				f.Verdict, f.Why = NotHere, "it takes more than 1 ms"
			default:
				f.Verdict, f.Why, f.Settle = NotChecked, odd.unsettled(), "--full"
			}
			return f
		},
	}
}

func copyBtrfs() Claim {
	return Claim{
		Name: "copy-btrfs-16284", Source: copyBufferSizes, Says: "btrfs takes longer with 16284 bytes than with 4096", Published: "longer", Of: "btrfs",
		Arms: []string{copyArm(oddBuffer), copyArm(4096)},
		Judge: onFileSystem("btrfs", "A_FOLDER_ON_BTRFS", func(e Evidence) Finding {
			return ratio(e.Ratio(copyArm(oddBuffer), copyArm(4096), written)).judge(atLeast(1), NotHere, "so it does", "it takes less")
		}),
	}
}

func copyExt4() Claim {
	return Claim{
		Name: "copy-ext4-4096", Source: copyBufferSizes, Says: "ext4 peaks at 4096 bytes and gets slower with larger buffers", Published: "0.110 s at 4096, 0.133 s at 65536", Of: "ext4",
		Arms: []string{copyArm(65536), copyArm(4096)},
		Judge: onFileSystem("ext4", "A_FOLDER_ON_EXT4", func(e Evidence) Finding {
			return ratio(e.Ratio(copyArm(65536), copyArm(4096), written)).judge(atLeast(1), NotHere, "65536 bytes take longer", "65536 bytes take less than 4096")
		}),
	}
}

func copyJFS() Claim {
	return Claim{
		Name: "copy-jfs-small", Source: copyBufferSizes, Says: "jfs is the fastest with small buffers, btrfs the slowest", Published: "66 s, 114 s for 100 MB by single bytes",
		Judge: func(e Evidence) Finding {
			return Finding{Verdict: NotChecked, Why: fmt.Sprintf("it takes jfs and btrfs side by side, and this folder is on %s", e.Fact("file system"))}
		},
	}
}

func copyUser() Claim {
	return Claim{
		Name: "copy-user-negligible", Source: copyBufferSizes, Says: "user CPU time is negligible with buffers larger than 4096", Published: "0 to 5 of 111 to 197 ms",
		Arms: []string{copyArm(65536)},
		Judge: func(e Evidence) Finding {
			s := figure(e.Summary(copyArm(65536), userShare), percent)
			return s.judge(atMost(0.1), NotHere, "at most a tenth of the CPU time is the program's own at 65536 bytes", "more than a tenth of the CPU time is the program's own")
		},
	}
}

func copySystem() Claim {
	return Claim{
		Name: "copy-system", Source: copyBufferSizes, Says: "with small buffers the time is spent in the kernel, hardly any in user space", Published: "67 s of 77 s",
		Arms: []string{copyArm(1)},
		Judge: func(e Evidence) Finding {
			system := func(t result.Trial) float64 { return 1 - userShare(t) }
			s := figure(e.Summary(copyArm(1), system), percent)
			return s.judge(atLeast(0.5), NotHere, "most of the CPU time of single bytes is the kernel's", "half of the CPU time or more is the program's own")
		},
	}
}

func copySyncLarger() Claim {
	return Claim{
		Name: "copy-osync-larger", Source: copyBufferSizes, Says: "with O_SYNC too, the bigger the buffer the better",
		Arms: []string{syncArm(1), syncArm(4096)},
		Judge: func(e Evidence) Finding {
			perByte := func(t result.Trial) float64 { return float64(t.Write) / float64(t.Size) }
			return ratio(e.Ratio(syncArm(1), syncArm(4096), perByte)).judge(atLeast(2), NotHere, "a byte costs that many times as much in single bytes", "the size does not matter here")
		},
	}
}

// wholeMebibyte is the time of a mebibyte in records of the size.
func wholeMebibyte(size float64) Metric {
	return func(t result.Trial) float64 { return written(t) * (1 << 20) / size }
}

func copySyncByte() Claim {
	return Claim{
		Name: "copy-osync-byte", Source: copyBufferSizes, Says: "1 MB by single bytes with O_SYNC takes 1582 s", Published: "1582 s",
		Arms: []string{syncArm(1)},
		Judge: func(e Evidence) Finding {
			s := figure(e.Summary(syncArm(1), wholeMebibyte(1)), duration)
			f := s.judge(about(1582e9, 2), NotHere, "within a factor of two", "another disk: the time is that of a sync, once for each byte")
			f.Measured += ", predicted"
			return f
		},
	}
}

// Of part B the row of one byte is a real time, and the others are the one run that
// was made divided by the 20 that were planned.
const (
	publishedByte = 1582.0 // seconds
	publishedTwo  = 42.23
)

func copySyncAverage() Claim {
	return Claim{
		Name: "copy-osync-two", Source: copyBufferSizes, Says: "two bytes a write take a 37th of the time of one", Published: "1582 s, 42.2 s",
		Arms: []string{syncArm(1), syncArm(2)},
		Judge: func(e Evidence) Finding {
			one, two := wholeMebibyte(1), wholeMebibyte(2)
			mixed := func(t result.Trial) float64 {
				if t.Cell == syncArm(1) {
					return one(t)
				}
				return two(t)
			}
			c := ratio(e.Ratio(syncArm(1), syncArm(2), mixed))
			return c.judge(about(publishedByte/publishedTwo, 2), NeverSo, "so it does",
				fmt.Sprintf("half as many syncs take half the time: the published row is one run divided by 20, and was %.0f s", math.Round(publishedTwo*20)))
		},
	}
}
