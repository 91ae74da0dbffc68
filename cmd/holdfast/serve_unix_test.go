//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// A serving child is holdfast serve in a process of its own, and the address that it has printed.
func startServe(t *testing.T, args ...string) (c *child, address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	c = &child{Cmd: exec.Command(self, append([]string{"serve"}, args...)...)}
	c.Env, c.Stdout = append(os.Environ(), asCommand+"=1"), write
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.pipe, c.stderr = pipe, bufio.NewReader(pipe)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() }) // it has ended, unless the test failed
	write.Close()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return c, strings.TrimSuffix(line, "\n")
}

// browse asks for a page as a browser does. With net/http, the tests of the command's start would see that.
func browse(t *testing.T, address, path string) *bufio.Reader {
	t.Helper()
	host := strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host); err != nil {
		t.Fatal(err)
	}
	answer := bufio.NewReader(conn)
	if line, err := answer.ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
		t.Fatalf("%s is answered by %q, %v", path, line, err)
	}
	return answer
}

// TestServeEndsWithZeroWhenItIsInterrupted ends it while a page is open that follows a run.
func TestServeEndsWithZeroWhenItIsInterrupted(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			skipIfIgnored(t, signal)
			dir := t.TempDir()
			header, _, _ := strings.Cut(mustRead(t, "../internal/measure/result/testdata/version1.jsonl"), "\n")
			if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(header+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, address := startServe(t, dir)
			browse(t, address, "events?file=a.jsonl")
			if err := c.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if code := c.exit(t); code != 0 {
				t.Errorf("exit code %d:\n%s", code, c.reported.String())
			}
			if text := c.reported.String(); text != fmt.Sprintf("holdfast: showing the results in %s until it is interrupted\n", dir) {
				t.Errorf("it said %q", text)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("%v is left, %v", left, err)
			}
		})
	}
}

// TestServeOutlivesBrowsersAndItsReader: a browser that goes away in the middle of a page, and a
// reader of standard output that is gone (startServe's is), raise SIGPIPE.
func TestServeOutlivesBrowsersAndItsReader(t *testing.T) {
	isolate.Once(t)
	skipIfIgnored(t, os.Interrupt)
	dir := t.TempDir()
	good := mustRead(t, "../internal/measure/result/testdata/version1.jsonl")
	for i := range 400 { // the list is larger than the buffers of a connection that nobody reads
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%s.jsonl", i, strings.Repeat("long", 50))), []byte(good), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, address := startServe(t, dir)
	host := strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/")
	for range 20 {
		browser, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(browser, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
			t.Fatal(err)
		}
		if _, err := browser.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := browser.(*net.TCPConn).SetLinger(0); err != nil { // so that it is reset
			t.Fatal(err)
		}
		browser.Close()
	}
	if page, err := io.ReadAll(browse(t, address, "")); err != nil || !strings.Contains(string(page), "400 of 400 files") {
		t.Errorf("the list: %v\n%.300s", err, page)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, c.reported.String())
	}
}

// TestServeSaysWhoElseMayRead names an address that others reach, and a port that is taken.
func TestServeSaysWhoElseMayRead(t *testing.T) {
	skipIfIgnored(t, os.Interrupt)
	c, address := startServe(t, t.TempDir(), "--listen", "0.0.0.0:0")
	host := strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/")
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatal(err)
	}
	taken := startChild(t, "serve", t.TempDir(), "--listen", "127.0.0.1:"+port)
	if code := taken.exit(t); code != cli.ExitCannot || !strings.Contains(taken.reported.String(), "address already in use\nhint: choose another address with --listen") {
		t.Errorf("a taken port: exit code %d\n%s", code, taken.reported.String())
	}
	browse(t, "127.0.0.1:"+port, "")
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(t); code != 0 || !strings.Contains(c.reported.String(), "holdfast: caution: everybody who can reach ") {
		t.Errorf("exit code %d\n%s", code, c.reported.String())
	}
}
