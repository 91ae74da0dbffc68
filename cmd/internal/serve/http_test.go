package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// start serves until the test ends, and checks that no goroutine is left then. It returns the address,
// and a function that ends it at once.
func start(t *testing.T, answer handler, failed func(any)) (address string, end func()) {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serveAll(ctx, listener, answer, failed) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		end()
		for began := time.Now(); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
			if time.Since(began) > time.Minute {
				t.Fatalf("%d goroutines, at first %d", runtime.NumGoroutine(), goroutines)
			}
		}
	})
	return listener.Addr().String(), end
}

// raw sends bytes, and returns all that comes back.
func raw(t *testing.T, address, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("%.40q: %v after %q", request, err, text)
	}
	return string(text)
}

func echo(_ context.Context, w *response, r *request) {
	w.Text(statusOK, fmt.Sprintf("%s %s %q host %q origins %q", r.Method, r.Path, r.Query.Encode(), r.Host, r.Origins))
}

func TestRequestsAreReadAsTheyAreMeant(t *testing.T) {
	address, _ := start(t, echo, nil)
	check := func(request, want string) {
		t.Helper()
		got := raw(t, address, request)
		if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\n"+want+"\n") || !strings.Contains(got, "\r\nConnection: close\r\n") {
			t.Errorf("%q is answered by\n%s", request, got)
		}
	}
	check("GET / HTTP/1.1\r\nHost: a:1\r\n\r\n", `GET / "" host "a:1" origins []`)
	check("GET /a%20b?x=1&y=%26&x=%zz HTTP/1.0\r\nhost: a\r\norigin: http://o\r\n\r\n", `GET /a b "x=1&y=%26" host "a" origins ["http://o"]`)
	check("GET // HTTP/1.1\nHost: a\n\n", `GET // "" host "a" origins []`)
	check("GET / HTTP/1.1\r\n\r\n", `GET / "" host "" origins []`)
	check("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nOrigin: c\r\nOrigin: d\r\n\r\n", `GET / "" host "" origins ["c" "d"]`)
	check("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n"+strings.Repeat("x", 20000), `POST / "" host "a" origins []`)
	check("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n", `GET / "" host "a" origins []`)
	if got := raw(t, address, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.HasSuffix(got, "\r\n\r\n") || !strings.Contains(got, "\r\nContent-Length: 30\r\n") {
		t.Errorf("HEAD is answered by\n%s", got)
	}
}

func TestWhatIsNoRequestIsRefused(t *testing.T) {
	address, _ := start(t, func(context.Context, *response, *request) { t.Error("it was answered") }, nil)
	check := func(status int, request string) {
		t.Helper()
		if got := raw(t, address, request); !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d %s\r\n", status, phrases()[status])) {
			t.Errorf("%.60q is answered by\n%s", request, got)
		}
	}
	for _, request := range []string{
		"\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "get / HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET * HTTP/1.1\r\n\r\n",
		"GET a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\n: a\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		check(statusBadRequest, request)
	}
	check(statusOtherVersion, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	check(statusOtherVersion, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n")
	check(statusTooLarge, "GET / HTTP/1.1\r\nHost: "+strings.Repeat("a", mostRequest))
	check(statusTooLarge, "GET /"+strings.Repeat("a", mostRequest))
	check(statusTooLarge, "GET / HTTP/1.1\r\n"+strings.Repeat("a: b\r\n", mostRequest/6))
}

// TestNothingIsAnsweredToNothing: a browser opens connections ahead, and may use one later.
func TestNothingIsAnsweredToNothing(t *testing.T) {
	address, _ := start(t, func(context.Context, *response, *request) { t.Error("nobody has asked") }, nil)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); err != nil || len(text) > 0 {
		t.Errorf("%q, %v", text, err)
	}
}

func TestHeadersAreOneLine(t *testing.T) {
	address, _ := start(t, func(_ context.Context, w *response, _ *request) {
		w.Set("X", "a\r\nY: b\x00")
		w.Text(statusOK, "")
	}, nil)
	if got := raw(t, address, "GET / HTTP/1.1\r\n\r\n"); !strings.Contains(got, "\r\nX: a  Y: b \r\n") {
		t.Errorf("%q", got)
	}
}

// TestAPanicEndsItsConnectionAlone: what a results file brings about in one page leaves the others.
func TestAPanicEndsItsConnectionAlone(t *testing.T) {
	values := make(chan any, 2)
	address, _ := start(t, func(_ context.Context, w *response, r *request) {
		if r.Path == "/late" {
			w.Stream("text/plain")
		}
		if r.Path != "/" {
			panic("in " + r.Path)
		}
		w.Text(statusOK, "whole")
	}, func(v any) { values <- v })
	if got := raw(t, address, "GET /early HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 500 ") || <-values != "in /early" {
		t.Errorf("%q", got)
	}
	if got := raw(t, address, "GET /late HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.HasSuffix(got, "\r\n\r\n") || <-values != "in /late" {
		t.Errorf("%q", got)
	}
	if got := raw(t, address, "GET / HTTP/1.1\r\n\r\n"); !strings.HasSuffix(got, "whole\n") {
		t.Errorf("%q", got)
	}
}

// TestABrowserThatIsGoneEndsItsHandler waits for no event of the page's own.
func TestABrowserThatIsGoneEndsItsHandler(t *testing.T) {
	ended := make(chan error, 1)
	address, _ := start(t, func(ctx context.Context, w *response, _ *request) {
		w.Stream("text/event-stream")
		<-ctx.Done()
		ended <- ctx.Err()
	}, nil)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestItEndsWithConnectionsOfEveryKind: idle ones, halves of requests, streams, and readers that do not read.
func TestItEndsWithConnectionsOfEveryKind(t *testing.T) {
	stuck := make(chan struct{}, 1)
	address, end := start(t, func(ctx context.Context, w *response, r *request) {
		w.Stream("text/plain")
		if r.Path == "/stream" {
			<-ctx.Done()
			return
		}
		page := make([]byte, 64<<10)
		for n := 0; ; n++ { // until the buffers of the connection are full
			if n == 1 {
				stuck <- struct{}{}
			}
			if _, err := w.Write(page); err != nil {
				return
			}
		}
	}, nil)
	for _, request := range []string{"", "GET / HT", "GET /stream HTTP/1.1\r\n\r\n", "GET /unread HTTP/1.1\r\n\r\n"} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
	}
	<-stuck
	end()
}

func TestConnectionsAreBounded(t *testing.T) {
	began := make(chan struct{}, mostConnections+1)
	address, _ := start(t, func(ctx context.Context, w *response, r *request) {
		began <- struct{}{}
		if r.Path == "/" {
			<-ctx.Done()
		}
		w.Text(statusOK, "")
	}, nil)
	var all []net.Conn
	for range mostConnections {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		all = append(all, conn)
	}
	for range mostConnections {
		<-began
	}
	done := make(chan string)
	go func() { done <- raw(t, address, "GET /next HTTP/1.1\r\n\r\n") }()
	for range 1000 {
		runtime.Gosched()
	}
	if len(began) > 0 {
		t.Error("one more is answered")
	}
	all[0].Close()
	if got := <-done; !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("%q", got)
	}
}

// TestHalfOpenConnectionsHoldNothingUp: more connections than there are places, and none has asked anything.
func TestHalfOpenConnectionsHoldNothingUp(t *testing.T) {
	address, _ := start(t, echo, nil)
	var all []net.Conn
	for range 300 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HT"); err != nil {
			t.Fatal(err)
		}
		all = append(all, conn)
	}
	began := time.Now()
	if got := raw(t, address, "GET /asked HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("%q", got)
	}
	if took := time.Since(began); took >= mostAsking {
		t.Errorf("the answer took %v: it waited until connections had asked nothing for %v", took, mostAsking)
	}
	// The last ones still have their places.
	last := all[len(all)-1]
	if _, err := io.WriteString(last, "TP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(last); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
		t.Errorf("%q, %v", got, err)
	}
}
