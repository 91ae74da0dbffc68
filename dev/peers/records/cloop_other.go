//go:build !cgo || !unix

package records

import "fmt"

func openC(string, work) (*sink, error) {
	return nil, fmt.Errorf("this program was built without a C compiler: %w", errUnsupported)
}
