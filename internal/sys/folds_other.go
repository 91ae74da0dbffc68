//go:build !linux

package sys

// FoldsNames reports whether a directory may take two names for one, which is not known here.
func (Disk) FoldsNames(int) bool { return true }
