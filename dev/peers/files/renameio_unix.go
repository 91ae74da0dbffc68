//go:build unix

package files

import "github.com/google/renameio/v2"

func renameioWrite(path string, data []byte) error { return renameio.WriteFile(path, data, 0o666) }
