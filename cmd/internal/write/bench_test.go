package write

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/files"
)

// BenchmarkWrite spreads 64 MiB of 100-byte lines: to one file, and to a file for each of 100 values.
func BenchmarkWrite(b *testing.B) {
	var lines bytes.Buffer
	for i := 0; lines.Len() < 64<<20; i++ {
		fmt.Fprintf(&lines, "%08d v%03d %085d\n", i, rand.IntN(100), i)
	}
	run := func(name string, o order) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(lines.Len()))
			for b.Loop() {
				o.out.before = b.TempDir() + "/"
				if !o.out.varies {
					o.out.before += "log"
				}
				set, err := files.New(o.options())
				if err != nil {
					b.Fatal(err)
				}
				s := o.spread(set, newPulse(cli.NewProgress(io.Discard, true), set), nil)
				s.run(b.Context(), newIntake(bytes.NewReader(lines.Bytes())))
				if s.close(); s.totals.Bytes != int64(lines.Len()) {
					b.Fatal(s.totals)
				}
				s.show.End()
				if err := os.RemoveAll(o.out.before); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("one", order{policy: holdfast.Buffered(64 * holdfast.KiB)})
	run("column", order{policy: holdfast.Buffered(64 * holdfast.KiB), out: target{varies: true}, column: 2})
}
