package renameio_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/adapters/renameio"
)

// The calls are renameio's, so a program changes one import. The new file and its name are durable when WriteFile returns.
func Example() {
	dir, err := os.MkdirTemp("", "renameio")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	path := filepath.Join(dir, "settings.json")
	for _, text := range []string{`{"level":"info"}`, `{"level":"debug"}`} {
		if err := renameio.WriteFile(path, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	// Output:
	// {"level":"debug"}
}
