//go:build go1.25

package renameio_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/adapters/renameio"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/provetest"
)

// TestAReplacedFileSurvives kills, failing calls and power cuts: it is the old one or the new one, and the
// new one once WriteFile has returned.
func TestAReplacedFileSurvives(t *testing.T) {
	isolate.Once(t)
	provetest.Test(t, provetest.Workload{Write: keepReplacing, Read: replaced, Synced: true, Time: 300 * time.Millisecond})
}

func keepReplacing(dir string, log *provetest.Log) error {
	for {
		value := strconv.FormatInt(time.Now().UnixNano(), 36)
		log.Begin("state", value)
		if err := renameio.WriteFile(filepath.Join(dir, "state"), []byte(value), 0o644); err != nil {
			return err
		}
		log.Ack("state", value)
	}
}

func replaced(dir string) (map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "state"))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	return map[string]string{"state": string(data)}, err
}
