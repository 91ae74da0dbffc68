package study

import (
	"fmt"
	"net"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// PageBytes is the size of a page, and of a block of most file systems.
const PageBytes = 4096

// NoSocket is the reason why no connection is possible here, or empty.
func NoSocket() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return fmt.Sprintf("no TCP socket on the loopback: %v", err)
	}
	return ""
}

// CacheMissing is the reason why a file's pages can't have that state here, or empty.
func CacheMissing(c Choice, cache result.Cache) string {
	switch cache {
	case result.NewFile:
		return "a new file has nothing to read or to overwrite: use --cache cold, warm or drop"
	case result.Warm:
		return c.NeverWarm
	case result.Cold:
		return c.NeverCold
	case result.Dropped:
		if err := probe.MayDropCaches(); err != nil {
			return err.Error()
		}
		return c.NeverCold
	}
	return ""
}

// CacheElsewhere are the flags with which a file could be cold.
func CacheElsewhere(c Choice, cache result.Cache) string {
	if cache == result.Cold && c.NeverCold != "" && c.NeverWarm == "" {
		return "--dir A_DIRECTORY_ON_A_DISK"
	}
	return ""
}
