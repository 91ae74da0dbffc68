package recipes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
)

// Serve runs a service with a log. SIGHUP, which logrotate sends when it has moved the file, opens a new one. SIGTERM ends the service, and
// the log's last records are written. What ends by os.Exit or log.Fatal instead loses up to a second of them: call Close before.
func Serve(path string, work func(ctx context.Context, log *slog.Logger) error) error {
	out, err := rotate.Open(path, rotate.Options{
		Policy:  holdfast.Periodic(time.Second),
		OnError: func(err *rotate.Error) { fmt.Fprintln(os.Stderr, err) }, // slog drops what Write returns
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	reopened := make(chan struct{})
	go func() {
		defer close(reopened)
		for range hangUps {
			_ = out.Reopen() // OnError hears of it, and the log goes on in the old file
		}
	}()
	err = work(ctx, slog.New(slog.NewJSONHandler(out, nil)))
	signal.Stop(hangUps)
	close(hangUps)
	<-reopened
	return errors.Join(err, out.Close())
}
