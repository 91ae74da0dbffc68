//go:build !linux

package main

import "os"

// fdatasync is the file's own Sync where the system has nothing weaker.
func fdatasync(f *os.File) error { return f.Sync() }

// settle has no system call to build on here.
func settle(string) {}

// inMemory is not known here.
func inMemory(string) bool { return false }
