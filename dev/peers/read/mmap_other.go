//go:build !unix

package read

import (
	"errors"
	"fmt"
)

func withMapped(func(data []byte) result) func(string, int) (result, error) {
	return func(string, int) (result, error) {
		return result{}, fmt.Errorf("mmap: %w", errors.ErrUnsupported)
	}
}
