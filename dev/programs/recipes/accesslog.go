package recipes

import (
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
)

// AccessLog logs each request as a line of JSON, as Caddy does: the file rotates at midnight and at 100 MiB, backups are compressed and go
// after 90 days. A power cut takes the last second, a kill the last tenth of one. Close it when the server has ended.
func AccessLog(path string, next http.Handler) (http.Handler, io.Closer, error) {
	out, err := rotate.Open(path, rotate.Options{
		Policy:  holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)},
		MaxSize: 100 * holdfast.MiB, RotateAt: []string{"00:00"}, MaxAge: 90 * 24 * time.Hour, Compress: true, Perm: 0o600,
		OnError: func(err *rotate.Error) { slog.Error("the access log", "error", err) }, // to another log
	})
	if err != nil {
		return nil, nil, err
	}
	access := slog.New(slog.NewJSONHandler(out, nil))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, answer := time.Now(), &counted{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		access.Info("handled request", "method", r.Method, "host", r.Host, "uri", r.RequestURI, "status", answer.status, "size", answer.size,
			"duration", time.Since(began).Seconds())
	}), out, nil
}

type counted struct {
	http.ResponseWriter
	status, size int
}

func (c *counted) WriteHeader(status int) { c.status = status; c.ResponseWriter.WriteHeader(status) }

func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.size += n
	return n, err
}
