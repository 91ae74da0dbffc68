//go:build !linux

package sys

// YieldThread does nothing here.
func YieldThread() {}
