//go:build !windows

package live

import "os"

func canDraw(*os.File) bool { return true }
