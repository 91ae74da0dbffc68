// Package zerolog gives zerolog a rotating log that loses no record of a Fatal or a Panic.
package zerolog

import (
	"github.com/holdfast-go/holdfast/rotate"
	"github.com/rs/zerolog"
)

// A Writer writes records to a log. A [rotate.File] itself is an io.Writer for zerolog, but zerolog
// closes such a writer at Fatal only. A Writer makes a record of the level Panic or Fatal durable
// before zerolog ends the goroutine or the process.
//
// zerolog reports a failed write only to zerolog.ErrorHandler; the log's OnError also gets
// background failures.
type Writer struct{ *rotate.File }

// WriteLevel writes a record.
func (w Writer) WriteLevel(level zerolog.Level, p []byte) (n int, err error) {
	n, err = w.Write(p)
	if err == nil && (level == zerolog.FatalLevel || level == zerolog.PanicLevel) {
		err = w.Sync()
	}
	return n, err
}
