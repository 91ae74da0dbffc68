//go:build go1.25

package files_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/files"
)

// writeByConfig does what the JSON configuration of the published writer pool says. Its
// retries count every call, the first too; its backoff is in milliseconds.
func writeByConfig(ctx context.Context, config []byte) (*files.Results, error) {
	var c struct {
		Files   []string
		Mode    string // a or w
		Message string
		MaxPool int
		Retries int
		Backoff int
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, err
	}
	mode, ok := map[string]files.Mode{"a": files.Append, "w": files.Truncate}[c.Mode]
	if !ok {
		return nil, fmt.Errorf("mode %q is neither a nor w", c.Mode)
	}
	base := time.Duration(c.Backoff) * time.Millisecond
	set, err := files.New(files.Options{
		Handles: max(c.MaxPool, 4), // the least with which a file can be written
		Retry:   files.Retry{Attempts: max(c.Retries, 1), Base: base, Cap: max(base, time.Second)},
	})
	if err != nil {
		return nil, err
	}
	defer set.Close() // nothing was appended by Append
	return set.WriteEach(ctx, c.Files, []byte(c.Message), mode)
}

func ExampleSet_WriteEach_configuration() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	results, err := writeByConfig(context.Background(), fmt.Appendf(nil, `{
		"files": [%q, %q], "mode": "a", "message": "Hello, World!",
		"maxPool": 10, "retries": 3, "backoff": 100
	}`, filepath.Join(dir, "file1.txt"), filepath.Join(dir, "file2.txt")))
	fmt.Println(results, err)
	// Output: 2 of 2 files succeeded (100.0 %), 0 failed (0.0 %): 2 written; 26 bytes, 2 attempts <nil>
}
