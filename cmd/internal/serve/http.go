package serve

// This file answers the browser of one person: HTTP/1.1 as far as that takes it. A connection is for
// one request, which has no body. It knows no page.
//
// net/http does far more, TLS and HTTP/2 among it. It would make the command larger by a quarter, and
// the start of every command slower.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// The status codes that are answered (RFC 9110).
const (
	statusOK               = 200
	statusBadRequest       = 400
	statusForbidden        = 403
	statusNotFound         = 404
	statusMethodNotAllowed = 405
	statusMisdirected      = 421
	statusNotShown         = 422
	statusTooLarge         = 431
	statusFailed           = 500
	statusBusy             = 503
	statusOtherVersion     = 505
)

func phrases() map[int]string {
	return map[int]string{
		statusOK: "OK", statusBadRequest: "Bad Request", statusForbidden: "Forbidden", statusNotFound: "Not Found", statusMethodNotAllowed: "Method Not Allowed",
		statusMisdirected: "Misdirected Request", statusNotShown: "Unprocessable Content", statusTooLarge: "Request Header Fields Too Large",
		statusFailed: "Internal Server Error", statusBusy: "Service Unavailable", statusOtherVersion: "HTTP Version Not Supported",
	}
}

// Limits of a browser's use of this process.
const (
	mostConnections = 128
	mostRequest     = 32 << 10         // bytes of a request, and of the bytes behind it
	mostAsking      = 10 * time.Second // until a request is whole
	mostWriting     = time.Minute      // for one write
	mostEnding      = 2 * time.Second  // for answers still being written when the server ends
	mostLingering   = time.Second      // until a browser closes, which has its answer
)

// A request is one request of a browser.
type request struct {
	Method  string // in capitals, as all that are defined
	Path    string // with escapes undone
	Query   url.Values
	Host    string   // empty: none, or several
	Origins []string // of the page that asks, where browsers say so
	Sites   []string // how that page stands to this server, as browsers say (Sec-Fetch-Site)
	Local   *net.TCPAddr
}

// A handler answers a request, by one call of Send or Stream. ctx ends with the server, or when the
// browser is gone.
type handler func(ctx context.Context, w *response, r *request)

// serveAll answers until ctx ends, and returns when no connection and no goroutine is left. Each request has a
// goroutine of its own. A handler that panics ends its connection alone, and failed has the value.
func serveAll(ctx context.Context, listener net.Listener, answer handler, failed func(any)) error {
	var connections sync.WaitGroup
	defer connections.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end() // before the connections are waited for
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	free := make(chan struct{}, mostConnections)
	var asking asking
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // too many open files, or a browser that has gone already
			select {
			case <-time.After(mostLingering):
			case <-ctx.Done():
			}
			continue
		}
		if len(free) == cap(free) {
			asking.endOldest()
		}
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			conn.Close()
			continue
		}
		asking.add(conn)
		connections.Go(func() {
			serve(ctx, conn, &asking, answer, failed)
			<-free
		})
	}
}

// An asking holds the connections whose request is not whole yet, the oldest first. Where no place is free, that
// one makes room: who opens connections and says nothing holds up nobody.
type asking struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (a *asking) add(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns = append(a.conns, conn)
}

// remove removes a connection; it may have been removed before.
func (a *asking) remove(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns = slices.DeleteFunc(a.conns, func(c net.Conn) bool { return c == conn })
}

// endOldest closes the oldest connection, if there is one.
func (a *asking) endOldest() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.conns) > 0 {
		a.conns[0].Close()
		a.conns = slices.Delete(a.conns, 0, 1)
	}
}

// serve answers the request of a connection, and closes it.
func serve(ctx context.Context, conn net.Conn, asking *asking, answer handler, failed func(any)) {
	defer conn.Close()
	forget := context.AfterFunc(ctx, func() { // both fail if all is over
		_ = conn.SetReadDeadline(time.Now())
		_ = conn.SetWriteDeadline(time.Now().Add(mostEnding))
	})
	defer forget()
	_ = conn.SetReadDeadline(time.Now().Add(mostAsking)) // likewise
	w := &response{conn: conn, ctx: ctx}
	limited := &io.LimitedReader{R: conn, N: mostRequest}
	r, status := read(bufio.NewReader(limited))
	asking.remove(conn)
	if status == statusBadRequest && limited.N == 0 {
		status = statusTooLarge
	}
	if status != statusOK && limited.N == mostRequest {
		return // A browser opens connections ahead. An answer to nothing would be taken for that to its next request.
	}
	if status != statusOK {
		w.Text(status, "this request is not valid here")
		if ctx.Err() == nil { // to close with bytes unread would take the answer away
			closeWrite(conn)
			_, _ = io.CopyN(io.Discard, conn, mostRequest)
		}
		return
	}
	r.Local, _ = conn.LocalAddr().(*net.TCPAddr)
	w.head = r.Method == "HEAD"
	_ = conn.SetReadDeadline(time.Time{}) // the server may have ended: then ctx has
	inner, gone := context.WithCancel(ctx)
	defer gone()
	var watching sync.WaitGroup
	watching.Go(func() { // a browser that is gone ends the read
		defer gone()
		_, _ = io.Copy(io.Discard, limited)
	})
	func() {
		defer func() {
			if v := recover(); v != nil {
				failed(v)
				if !w.begun {
					w.Text(statusFailed, "this page failed: the terminal of holdfast serve says why")
				}
			}
		}()
		answer(inner, w, r)
	}()
	if ctx.Err() == nil {
		closeWrite(conn)
	} else {
		conn.Close()
	}
	watching.Wait()
}

// closeWrite ends the answer. The browser has some time to close too.
func closeWrite(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	_ = conn.SetReadDeadline(time.Now().Add(mostLingering))
}

// read reads a request up to its body. A status that is not OK says that it is none.
func read(from *bufio.Reader) (r *request, status int) {
	text := textproto.NewReader(from)
	line, err := text.ReadLine()
	if err != nil {
		return nil, statusBadRequest
	}
	method, rest, _ := strings.Cut(line, " ")
	target, version, ok := strings.Cut(rest, " ")
	if !ok || method == "" || strings.ContainsFunc(method, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		return nil, statusBadRequest
	}
	if version != "HTTP/1.1" && version != "HTTP/1.0" {
		return nil, statusOtherVersion
	}
	u, err := url.ParseRequestURI(target)
	if err != nil || !strings.HasPrefix(target, "/") {
		return nil, statusBadRequest
	}
	header, err := text.ReadMIMEHeader()
	if err != nil {
		return nil, statusBadRequest
	}
	r = &request{Method: method, Path: u.Path, Query: u.Query(), Origins: header["Origin"], Sites: header["Sec-Fetch-Site"]}
	if hosts := header["Host"]; len(hosts) == 1 {
		r.Host = hosts[0]
	}
	return r, statusOK
}

// A response is one answer to a browser. It is for one goroutine.
type response struct {
	conn   net.Conn
	ctx    context.Context // of the server
	head   bool            // the request is HEAD: there is no body
	begun  bool
	header strings.Builder
}

// Set adds a header. Its value is one line.
func (w *response) Set(name, value string) {
	fmt.Fprintf(&w.header, "%s: %s\r\n", name, strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, value))
}

// Send sends a whole answer. Bytes that it can't send have no reader.
func (w *response) Send(status int, kind, body string) {
	w.Set("Content-Length", fmt.Sprint(len(body)))
	if w.begin(status, kind) == nil && !w.head {
		_, _ = io.WriteString(w, body)
	}
}

// Text sends a sentence.
func (w *response) Text(status int, sentence string) {
	w.Send(status, "text/plain; charset=utf-8", sentence+"\n")
}

// Stream begins an answer that ends with the connection; Write sends its parts. more is false if there is
// nothing to send: to HEAD.
func (w *response) Stream(kind string) (more bool) {
	return w.begin(statusOK, kind) == nil && !w.head
}

func (w *response) begin(status int, kind string) error {
	w.begun = true
	// The form is RFC 9110's, 5.6.7.
	_, err := fmt.Fprintf(w, "HTTP/1.1 %d %s\r\nDate: %s\r\nConnection: close\r\nContent-Type: %s\r\n%s\r\n",
		status, phrases()[status], time.Now().UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"), kind, w.header.String())
	return err
}

// Write sends a part of the body.
func (w *response) Write(p []byte) (int, error) {
	_ = w.conn.SetWriteDeadline(time.Now().Add(mostWriting))
	if w.ctx.Err() != nil {
		_ = w.conn.SetWriteDeadline(time.Now().Add(mostEnding))
	}
	return w.conn.Write(p)
}
