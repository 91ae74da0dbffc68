// Package zstd has a log that rotates compress its backups with Zstandard.
package zstd

import (
	"io"

	"github.com/holdfast-go/holdfast/rotate"
	"github.com/klauspost/compress/zstd"
)

// Compressor compresses backups to .zst, by one goroutine: that of the log. Options are added to
// these. They must not ask for more goroutines.
func Compressor(options ...zstd.EOption) rotate.Compressor {
	options = append([]zstd.EOption{zstd.WithEncoderConcurrency(1)}, options...)
	return rotate.Compressor{
		Suffix: ".zst",
		New:    func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, options...) },
	}
}
