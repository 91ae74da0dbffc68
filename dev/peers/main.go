// Command peers does the same work with holdfast and with other libraries and programs, in
// interleaved rounds, and prints how they compare.
//
//	go run -C dev/peers . KIND [flags]
//
// Without a kind it lists them. Every round runs each arm once, in a new order, so that a
// change of the machine hits all of them. A time counts only if the bytes are right. The
// intervals are of 95 %, and the same arm twice shows the noise.
package main

import (
	"github.com/holdfast-go/holdfast/cmd/dev/peers/copies"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/crash"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/files"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/fsync"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/lines"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/read"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/recorded"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/records"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/rotate"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/slopes"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
)

// kinds are all that is compared.
var kinds = []command.Kind{records.Append, records.Durable, records.Latency, records.Idle, records.Log, files.Kind, read.Kind, lines.Kind, copies.Kind, fsync.Kind, rotate.Kind, crash.Kind,
	slopes.Kind, recorded.Kind(records.Append, records.Durable, records.Log)}

func main() {
	syscallfault.Launch() // the process of a program that is crashed
	command.Main(kinds...)
}
