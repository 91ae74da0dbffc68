//go:build !linux

package usermode

import "github.com/spf13/cobra"

// Commands are none: User-Mode Linux is a program of Linux.
func Commands() []*cobra.Command { return nil }
