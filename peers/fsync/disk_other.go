//go:build !linux

package main

// The groups that need these are left out.
const (
	oDsync  = 0
	oDirect = 0
)

// settle does nothing: there is no call for it on every other system.
func settle(string) {}
