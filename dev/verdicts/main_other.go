//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "verdicts: level power of a program needs Linux")
	os.Exit(2)
}
