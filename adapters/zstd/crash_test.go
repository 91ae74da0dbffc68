//go:build go1.25

package zstd_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/adapters/zstd"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/rotate"
	kp "github.com/klauspost/compress/zstd"
)

func TestBackupsKeepThePromises(t *testing.T) {
	crashsuite.Run(t, crashsuite.Opener{
		Name: "zstd",
		Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
			return rotate.Open(filepath.Join(g.Dir, "app.log"), rotate.Options{
				Policy: g.Policy, MaxSize: 3000, Compress: true, Compressor: zstd.Compressor(),
				OnError: func(e *rotate.Error) {
					if e.Op == "write" || e.Op == "sync" { // else it is of no record
						g.OnError(e)
					}
				},
			})
		},
		Read:       readBackups,
		FailedSync: crashsuite.Later,
		Resumes:    true,
		Heals:      true,
		NoDisk:     "it compresses for a rotate.File; package rotate has this promise on other disks",
	})
}

func readBackups(_ *testing.T, files map[string][]byte) (all [][]byte, err error) {
	d, err := kp.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data, packed := files[name], strings.HasSuffix(name, ".zst")
		if _, plain := files[strings.TrimSuffix(name, ".zst")]; strings.HasSuffix(name, ".part") || packed && plain || name == "app.log" {
			continue
		}
		if packed {
			if data, err = d.DecodeAll(data, nil); err != nil {
				return nil, err
			}
		}
		all = append(all, crashsuite.Lines(data)...)
	}
	return append(all, crashsuite.Lines(files["app.log"])...), nil
}
