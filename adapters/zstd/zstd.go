// Package zstd compresses the backups of a rotating log with Zstandard.
package zstd

import (
	"io"

	"github.com/holdfast-go/holdfast/rotate"
	"github.com/klauspost/compress/zstd"
)

// Compressor compresses backups to .zst in the goroutine of the log. The options come after the
// package's own. They must not ask for more goroutines.
func Compressor(options ...zstd.EOption) rotate.Compressor {
	options = append([]zstd.EOption{zstd.WithEncoderConcurrency(1)}, options...)
	return rotate.Compressor{
		Suffix: ".zst",
		New:    func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, options...) },
	}
}
