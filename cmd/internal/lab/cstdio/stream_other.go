//go:build !cgo || !(linux || darwin)

package cstdio

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// Missing says why there is no C side, or is empty.
func Missing() string {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return "the C side needs Linux or Darwin"
	}
	return "built without a C compiler: install gcc and build with CGO_ENABLED=1"
}

func missing() error { return fmt.Errorf("%s: %w", Missing(), errors.ErrUnsupported) }

// A Stream is a file that C reads or writes. Here there are none.
type Stream struct{}

// Create fails: see [Missing].
func Create(string, Setup) (*Stream, error) { return nil, missing() }

// Open fails: see [Missing].
func Open(string, Setup) (*Stream, error) { return nil, missing() }

// Write fails: see [Missing].
func (*Stream) Write(int64) (int64, error) { return 0, missing() }

// Read fails: see [Missing].
func (*Stream) Read(int64) (int64, error) { return 0, missing() }

// Sum is zero.
func (*Stream) Sum() Sum { return Sum{} }

// Flush fails: see [Missing].
func (*Stream) Flush() error { return missing() }

// Sync fails: see [Missing].
func (*Stream) Sync() error { return missing() }

// Fd returns no descriptor.
func (*Stream) Fd() uintptr { return ^uintptr(0) }

// Close fails: see [Missing].
func (*Stream) Close() error { return missing() }

// Copy fails: see [Missing].
func Copy(_, _ *os.File, _ []byte, _ int64) (int64, error) { return 0, missing() }
