//go:build !unix

package sys

// DescriptorLimit says that no limit is known. Windows has none but memory.
func DescriptorLimit() (n int, ok bool) { return 0, false }
