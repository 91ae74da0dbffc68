package filecopy_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/filecopy"
)

// A tree is copied, and all of the copy is durable, with its names, before All returns.
func ExampleAll() {
	dir, err := os.MkdirTemp("", "copy")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	photos, backup := filepath.Join(dir, "photos"), filepath.Join(dir, "backup")
	if err := os.MkdirAll(filepath.Join(photos, "2026"), 0o755); err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"a.jpg", "2026/b.jpg"} {
		if err := os.WriteFile(filepath.Join(photos, name), []byte("pixels"), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	pairs := maps.All(map[string]string{backup: photos}) // destination, source
	totals, err := filecopy.All(context.Background(), pairs, filecopy.Options{Policy: holdfast.Durable()})
	fmt.Println(totals.Files, "files in", totals.Dirs, "directories,", totals.Size, "bytes,", totals.Failed, "failed:", err)
	// Output: 2 files in 2 directories, 12 bytes, 0 failed: <nil>
}
