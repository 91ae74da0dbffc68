package place

import (
	"errors"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
)

func TestCannotOpenNamesTheQuota(t *testing.T) {
	var r *cli.Refusal
	for _, full := range []error{syscall.EDQUOT, syscall.ENOSPC} {
		if err := CannotOpen("here", full); !errors.As(err, &r) || r.Code != cli.ExitCannot || r.Hint != HintRoom {
			t.Errorf("%v: refused with %v", full, err)
		}
	}
}
