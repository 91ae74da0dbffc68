//go:build !linux

package zerocopy

import (
	"context"
	"errors"
)

const callsOfLinux = "the study compares calls of Linux"

var zeroFileWays = missingWays(pieces64, piecesMiB, mmapWrite, bySendfile, bySplice, byCopyRange, byReflink)

var zeroSocketWays = missingWays(pieces64, piecesMiB, mmapWrite, wholeFile, bySendfile, bySplice)

func missingWays(names ...string) (ways []zeroWay) {
	for _, name := range names {
		ways = append(ways, zeroWay{name: name, does: name, missing: callsOfLinux, move: cannotMove})
	}
	return ways
}

func cannotMove(context.Context, int, int, int64) (int64, error) { return 0, errors.ErrUnsupported }
