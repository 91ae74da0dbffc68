//go:build unix

package serve

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPipesAndDevicesAreNotOpened lists them with why, and waits for none.
func TestPipesAndDevicesAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"pipe.jsonl", "another pipe"} {
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "socket.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	want := 2
	if err := unix.Mknod(filepath.Join(dir, "device.jsonl"), unix.S_IFCHR|0o600, 1<<8|5); err == nil { // /dev/zero, by Linux
		want++
	}
	write(t, dir, "a.jsonl", lines(t, sample(t))...)
	s := newSite(t, dir)
	list := s.wants("/", http.StatusOK, "pipe.jsonl", "socket.jsonl", ">a.jsonl<").body
	if n := strings.Count(list, "is not a regular file"); n != want {
		t.Errorf("%d files are not regular, want %d:\n%s", n, want, list)
	}
	if strings.Contains(list, "another pipe") {
		t.Error("a pipe of any name is listed")
	}
	for _, name := range []string{"pipe.jsonl", "another pipe", "socket.jsonl"} {
		for _, page := range []string{"/report", "/live", "/events"} {
			s.wants(link(page, name), http.StatusUnprocessableEntity, "is not a regular file")
		}
	}
}

// TestAFileThatMayNotBeReadIsListed lists it with why.
func TestAFileThatMayNotBeReadIsListed(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read every file")
	}
	dir := t.TempDir()
	write(t, dir, "a.jsonl", lines(t, sample(t))...)
	if err := os.Chmod(filepath.Join(dir, "a.jsonl"), 0); err != nil {
		t.Fatal(err)
	}
	newSite(t, dir).wants("/", http.StatusOK, "may not be read")
}
