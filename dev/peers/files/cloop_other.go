//go:build !cgo || !unix

package files

import (
	"errors"
	"fmt"
)

func loopInC(bool) func(s *site) (func() error, error) {
	return func(*site) (func() error, error) {
		return nil, fmt.Errorf("this program was built without a C compiler: %w", errors.ErrUnsupported)
	}
}
