package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/web"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/report"
	"github.com/holdfast-go/holdfast/internal/lab/result"
)

const (
	// everyLook is the time between two looks at a file that may grow. Whoever watches a run takes
	// CPU time from it, so what a look takes is at most one part in restOfLook of the time.
	everyLook  = time.Second
	restOfLook = 50
	// everyBeat is the time after which something is sent in any case: only that shows that the
	// browser is gone.
	everyBeat = 15 * time.Second
)

// live answers with the page of a run that goes on.
func (s *server) live(ctx context.Context, w *web.Response, r *web.Request) {
	name := r.Query.Get("file")
	run, ok := s.read(ctx, w, name)
	if !ok {
		return
	}
	v := viewOf(run)
	s.show(w, web.OK, "live", map[string]string{
		"Name": name, "Events": link("/events", name), "Report": link("/report", name), "Status": v.status, "Table": v.table,
	})
}

// A view is a run as far as it is, in text.
type view struct {
	status, table string
	ended         bool
}

func viewOf(run result.Run) view {
	v := view{ended: run.End != nil && !run.Torn}
	planned := cli.CountText(int64(run.Header.Plan.Rounds), "round")
	v.status = fmt.Sprintf("%d of %s, %s", run.Rounds(), planned, cli.CountText(int64(len(run.Trials)), "trial"))
	if run.Header.Plan.Width > 0 {
		v.status = fmt.Sprintf("%d of about %s, %s", run.Rounds(), planned, cli.CountText(int64(len(run.Trials)), "trial"))
	}
	if v.ended {
		v.status += ": " + string(run.End.State)
	}
	var text strings.Builder
	err := report.Text(&text, run)
	v.table = text.String()
	if errors.Is(err, figure.ErrNoRound) {
		v.table = "the first round is not whole yet"
	} else if err != nil {
		v.table = err.Error()
	}
	return v
}

// events sends the run as it grows, until it ends (server-sent events, of the HTML standard).
func (s *server) events(ctx context.Context, w *web.Response, r *web.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		plain(w, web.Busy, fmt.Sprintf("%d runs are watched already: close one of those pages", mostStreams))
		return
	}
	name := r.Query.Get("file")
	if _, ok := s.read(ctx, w, name); !ok {
		return
	}
	w.Set("Content-Security-Policy", ownPolicy)
	if w.Stream("text/event-stream") {
		_ = s.follow(ctx, name, &stream{w, time.Now()}) // it ends with the run, or with whoever watches it
	}
}

// follow sends what a file holds each time that it has changed.
func (s *server) follow(ctx context.Context, name string, to *stream) error {
	var size int64 = -1
	var changed time.Time
	for {
		began := time.Now()
		info, err := s.store.root.Stat(name)
		if err != nil {
			return to.send("gone", reason(err))
		}
		if info.Size() != size || !info.ModTime().Equal(changed) {
			size, changed = info.Size(), info.ModTime()
			run, err := s.store.read(ctx, name)
			if err != nil {
				return to.send("gone", reason(err))
			}
			v := viewOf(run)
			if err := errors.Join(to.send("table", v.table), to.send("status", v.status)); err != nil {
				return err
			}
			if v.ended {
				return to.send("end", v.status)
			}
		} else if time.Since(to.sent) >= everyBeat {
			if err := to.send("", ""); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(everyLook, restOfLook*time.Since(began))):
		}
	}
}

// A stream is one of events.
type stream struct {
	w    io.Writer
	sent time.Time // the last one
}

// send sends an event; without a name it is a comment, which browsers pass over.
func (s *stream) send(name, text string) error {
	event := ":\n\n"
	if name != "" {
		event = "event: " + name + "\ndata: " + strings.ReplaceAll(cli.Visible(text), "\n", "\ndata: ") + "\n\n"
	}
	s.sent = time.Now()
	_, err := io.WriteString(s.w, event)
	return err
}
