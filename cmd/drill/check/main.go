// Command check says in plain words what is wrong with a student's file for the drill.
//
//	go run ./cmd/drill/check drill/c/diy_buffering.c
//
// Its exit code is 0 if nothing is wrong, 1 if something is, and 2 if it can't tell.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/diy"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := check(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func check(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "usage: go run ./cmd/drill/check FILE.c")
		return 2
	}
	found, err := diy.Check(ctx, args[0])
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	fmt.Fprint(stdout, found)
	if len(found.Faults) > 0 {
		return 1
	}
	return 0
}
