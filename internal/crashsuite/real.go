//go:build go1.25

package crashsuite

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// onKernel opens a subject in a directory of the kernel's disk.
func onKernel(t *testing.T, o Opener, p holdfast.Policy, dir string) *run {
	r := newRun(t, o, p, nil)
	r.g.Disk, r.g.Dir = nil, dir
	r.open()
	return r
}

// inMemory makes a directory inside the one that isolate has locked, since subjects lock their own.
func inMemory(t *testing.T) string {
	dir := filepath.Join(isolate.DirInMemory(t), "log")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// read returns the files below a directory.
func read(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			files[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	})
	return files, err
}

// Lay writes files below a new directory, for a reader of directories.
func Lay(t *testing.T, files map[string][]byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// killedDir is the environment variable with the directory of the process that is killed.
const killedDir = "HOLDFAST_TEST_KILLED"

// killed runs the test again, as a process that writes and prints its acknowledgements. It kills
// the process in the middle. If the subject resumes, another process continues.
func killed(t *testing.T, o Opener, p holdfast.Policy) []string {
	if runtime.GOOS == "windows" || runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("no process is killed here")
	}
	if dir, first, ok := strings.Cut(os.Getenv(killedDir), "\n"); ok {
		writeUntilKilled(t, o, p, dir, first)
		return nil
	}
	dir := inMemory(t)
	r := newRun(t, o, p, nil)
	r.g.Dir = dir
	r.fail() // the time of an acknowledgement is not known to the ms
	for round := range 2 {
		if round > 0 && !o.Resumes {
			break
		}
		if r.ok("the killed process", r.acknowledgedUntilKilled(dir, round)); len(r.problems) > 0 {
			break
		}
		r.holds(fmt.Sprintf("after kill %d", round+1), r.files(), r.now(), false)
		r.forget()
	}
	return r.problems
}

// streams is the number of goroutines that write in the killed process.
const streams = 3

// acknowledgedUntilKilled records the acknowledgements of a process, and kills it.
func (r *run) acknowledgedUntilKilled(dir string, round int) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, isolate.OnlyThis(r.t))
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s\n%d", killedDir, dir, streams*round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	said := 0
	lines := bufio.NewScanner(out)
	var rest []string
	for ; lines.Scan(); said++ {
		if said == 60 {
			if err := cmd.Process.Kill(); err != nil {
				return err
			}
		}
		var stream, size int
		if _, err := fmt.Sscanf(lines.Text(), "+%d %d", &stream, &size); err != nil {
			rest = append(rest, lines.Text())
			continue
		}
		x := r.begin(stream, size)
		r.check(r.done(x, len(x.text), nil))
	}
	// Records in flight may be there.
	for stream := range streams {
		stream += streams * round
		r.begin(stream, killedSize(r.next[stream]))
	}
	if err := cmd.Wait(); err == nil || said < 60 {
		return fmt.Errorf("it ended by itself after %d records: %v: %s", said, err, strings.Join(rest, "\n"))
	}
	return nil
}

func killedSize(seq int) int { return sizes[seq%len(sizes)] }

func writeUntilKilled(t *testing.T, o Opener, p holdfast.Policy, dir, from string) {
	var first int
	fmt.Sscan(from, &first)
	s, err := o.Open(&Ground{Policy: p, Dir: dir, OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for stream := range streams {
		all.Add(1)
		go func() {
			defer all.Done()
			for seq := 0; ; seq++ {
				text := textOf(first+stream, seq, killedSize(seq))
				if _, err := s.Write(text); err != nil {
					t.Error(err)
					return
				}
				fmt.Fprintf(os.Stdout, "+%d %d\n", first+stream, killedSize(seq))
			}
		}()
	}
	all.Wait()
}

// fullReal fills a file system of the test's own with another file.
func fullReal(t *testing.T, o Opener, p holdfast.Policy) (problems []string) {
	onFull(t, func(t *testing.T, dir string, fill, empty func() error) {
		before := goroutines()
		r := onKernel(t, o, p, filepath.Join(dir, "log"))
		if r.Subject == nil {
			problems = r.problems
			return
		}
		r.putOn(3)
		r.sync()
		r.ok("fill", fill())
		var failed error
		refused := 0
		for try := 0; refused < 3 && try < 100_000; try++ {
			size := 40 // never smaller than the record before: that might fit, and then failed writes are two failures
			if try > 40 {
				size = 3000
			}
			n, err := r.put(size)
			if n == 0 {
				refused++
			}
			failed = errors.Join(failed, err)
		}
		if refused < 3 {
			r.wrong("a full file system takes everything")
		}
		if has, err := r.sync(); has && err == nil && r.missingNow() > 0 {
			r.wrong("Sync of a full file system = nil")
		}
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			r.reporting.Lock()
			n := len(r.heard)
			r.reporting.Unlock()
			if n > 0 || o.Lacks[Heard] != "" {
				break
			}
			if time.Since(start) > 10*time.Second {
				r.wrong("OnError hears nothing of a full file system: %v", failed)
				break
			}
		}
		r.ok("empty", empty())
		r.putNow(3)
		if _, err := r.sync(); err != nil {
			_, err = r.sync()
			r.ok("Sync with room again", err)
		}
		r.ok("Close", r.Close())
		r.holdsAll("after Close")
		if len(r.heard) > 1 {
			r.wrong("OnError was called %d times of one full file system: %v", len(r.heard), r.heard)
		}
		r.leftReal(before)
		problems = r.problems
	})
	return problems
}

// putNow is putOn without the pauses of a minute.
func (r *run) putNow(records int) {
	for range records {
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			n, err := r.put(40)
			if n > 0 && r.rest == nil {
				break
			}
			if time.Since(start) > 10*time.Second {
				r.wrong("Write fails with room again: %v", err)
				return
			}
		}
	}
}

// leavesReal makes goroutines write, closes the subject, and calls it after Close.
func leavesReal(t *testing.T, o Opener, p holdfast.Policy) []string {
	before := goroutines()
	r := onKernel(t, o, p, inMemory(t))
	if r.Subject == nil {
		return r.problems
	}
	var all sync.WaitGroup
	for stream := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 20 {
				_, err := r.give(stream, sizes[(i+stream)%len(sizes)])
				r.ok("Write", err)
			}
		}()
	}
	all.Wait()
	r.ok("Close", r.Close())
	r.afterClose(nil)
	r.leftReal(before)
	r.holdsAll("after Close")
	for _, err := range r.heard {
		r.wrong("OnError hears %v", err)
	}
	return r.problems
}

// leftReal reports the goroutines that are left, and the open files below the directory.
func (r *run) leftReal(before int) {
	for start := time.Now(); goroutines() > before; time.Sleep(time.Millisecond) { // some goroutines are about to end
		if time.Since(start) > 10*time.Second {
			stacks := make([]byte, 1<<20)
			r.wrong("%d goroutines are left: %s", goroutines()-before, stacks[:runtime.Stack(stacks, true)])
			break
		}
	}
	links, _ := filepath.Glob("/proc/self/fd/*") // only Linux has it
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, r.g.Dir+"/") {
			r.wrong("%s is open after Close", to)
		}
	}
}

// goroutines counts the goroutines that this module's packages have started.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		made := stack[max(0, strings.LastIndex(stack, "created by ")):]
		if strings.HasPrefix(made, "created by github.com/holdfast-go/holdfast") && !strings.Contains(made, "/crashsuite.") {
			n++
		}
	}
	return n
}
