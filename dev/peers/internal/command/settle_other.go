//go:build !unix

package command

import "time"

// SettleAll does nothing: there is no call for it here.
func SettleAll() {}

func childrenTime() time.Duration { return 0 }
