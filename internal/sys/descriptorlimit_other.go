//go:build !unix

package sys

// DescriptorLimit reports no limit. On Windows only memory limits descriptors.
func DescriptorLimit() (n int, ok bool) { return 0, false }
