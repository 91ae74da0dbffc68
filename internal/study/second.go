package study

import (
	"context"
	"fmt"
	"io"
)

// A role is work that a second process does for an arm: one that is killed in the
// middle, or that reads while the first one writes. It talks with the first by its
// standard input and output.
type role func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error

// roles are all of them, by the first argument that [trial.Clock.Second] is given.
func roles() map[string]role {
	return map[string]role{
		killedWriter: writeUntilKilled,
		watchRole:    watchFile,
		stampRole:    stampUntilKilled,
		receiveRole:  receive,
	}
}

// RunSecond does the work of a second process; args are those that an arm gave to
// [trial.Clock.Second].
func RunSecond(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no work is named")
	}
	work, ok := roles()[args[0]]
	if !ok {
		return fmt.Errorf("there is no work %q", args[0])
	}
	return work(ctx, args[1:], stdin, stdout)
}
