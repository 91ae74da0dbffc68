//go:build !linux

package command

// Settle does nothing: there is no call for it on every other system.
func Settle(string) {}
