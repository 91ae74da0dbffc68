//go:build !linux

package main

// The groups that need these are left out.
const (
	oDsync  = 0
	oDirect = 0
)
