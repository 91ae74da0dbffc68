// Package logrus gives logrus a rotating log that is closed before Fatal ends the process.
package logrus

import (
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast/rotate"
	"github.com/sirupsen/logrus"
)

// Use makes the logger write to the log, and closes the log before Logger.Fatal or Logger.Exit ends
// the process. Panic runs deferred calls: close the log in one.
//
// logrus prints failed writes to the standard error; the log's OnError also gets background
// failures.
func Use(logger *logrus.Logger, to *rotate.File) {
	exit := logger.ExitFunc
	if exit == nil {
		exit = os.Exit
	}
	logger.ExitFunc = func(code int) {
		if err := to.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		exit(code)
	}
	logger.SetOutput(to)
}
