//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "foreign: it mounts file systems of Linux")
	os.Exit(3)
}
