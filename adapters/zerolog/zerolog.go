// Package zerolog gives zerolog a log that rotates and loses nothing of a Fatal or a Panic.
package zerolog

import (
	"github.com/holdfast-go/holdfast/rotate"
	"github.com/rs/zerolog"
)

// A Writer hands records to a log. A [rotate.File] is an io.Writer for zerolog as it is; but
// zerolog closes such a writer at Fatal alone. A Writer makes a record of the level Panic or
// Fatal durable before zerolog ends the goroutine or the process.
//
// zerolog reports no failed write but to zerolog.ErrorHandler; the log's OnError hears those of
// the background too.
type Writer struct{ *rotate.File }

// WriteLevel writes a record.
func (w Writer) WriteLevel(level zerolog.Level, p []byte) (n int, err error) {
	n, err = w.Write(p)
	if err == nil && (level == zerolog.FatalLevel || level == zerolog.PanicLevel) {
		err = w.Sync()
	}
	return n, err
}
