// Tutorial is the program of docs/tutorial.md: a service that logs a thousand numbered records a second until it is
// killed. It prints each number on standard output, which has no buffer, when the log has accepted the record.
package main

import (
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
)

func main() {
	policy := holdfast.Periodic(time.Second)
	flag.TextVar(&policy, "policy", policy, "how long a record may wait")
	path := flag.String("log", "app.log", "the log")
	flag.Parse()

	out, err := rotate.Open(*path, rotate.Options{
		Policy:  policy,
		MaxSize: 100 * holdfast.KiB, MaxBackups: 50,
		OnError: func(err *rotate.Error) { fmt.Fprintln(os.Stderr, err) }, // slog drops it
	})
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()
	logger := slog.New(slog.NewJSONHandler(out, nil))
	for n := 1; ; n++ {
		logger.Info("order", "number", n)
		fmt.Println(n)
		time.Sleep(time.Millisecond)
	}
}
