//go:build unix

package main

import "github.com/google/renameio/v2"

func renameioWrite(path string, data []byte) error { return renameio.WriteFile(path, data, 0o666) }
