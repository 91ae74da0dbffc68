package holdfast

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestQuickSpeed(t *testing.T) {
	if os.Getenv("QUICK") == "" {
		t.Skip()
	}
	dir := t.TempDir()
	paths := make([]string, 5000)
	for i := range paths {
		paths[i] = fmt.Sprintf("%s/%04d.log", dir, i)
	}
	for _, p := range paths {
		os.WriteFile(p, nil, 0o666)
	}
	line := make([]byte, 100)
	f, _ := NewFiles(FilesOptions{Policy: Buffered(64 * KiB), Handles: 500, Memory: 64 * MiB})
	start := time.Now()
	for i := range 1_000_000 {
		if err := f.Append(noContext, paths[i%5000], line); err != nil {
			t.Fatal(err)
		}
	}
	a := time.Since(start)
	f.Close()
	t.Log("files", a, time.Since(start), f.Stats(), f.streams.memory.most)
	n := 100_000
	start = time.Now()
	for i := range n {
		x, _ := os.OpenFile(paths[i%5000], os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
		x.Write(line)
		x.Close()
	}
	t.Log("open append close, of 1M", time.Since(start)*10)
	f, _ = NewFiles(FilesOptions{Policy: Buffered(64 * KiB), Handles: 500, Memory: 64 * MiB})
	start = time.Now()
	for range 1_000_000 {
		f.Append(noContext, paths[0], line)
	}
	t.Log("one path", time.Since(start)/1_000_000)
	f.Close()
}
