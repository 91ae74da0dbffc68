//go:build !linux

package main

import (
	"errors"
	"os"
)

func openOverwrite(string, bool) (*os.File, func(p []byte) error, error) {
	return nil, nil, errors.New("RWF_DSYNC and O_DIRECT are Linux's")
}
