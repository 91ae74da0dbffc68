//go:build !linux

package main

import "github.com/spf13/cobra"

// guestCommands are none: User-Mode Linux is a program of Linux.
func guestCommands() []*cobra.Command { return nil }
