package recipes

import (
	"fmt"
	"os"
	"sync"

	holdfastzap "github.com/holdfast-go/holdfast/adapters/zap"
	"github.com/holdfast-go/holdfast/rotate"
	"go.uber.org/zap"
)

var registered = sync.OnceValue(func() error {
	return holdfastzap.Register(func(err *rotate.Error) { fmt.Fprintln(os.Stderr, err) })
})

// NewLogger is zap with a log that rotates, all by its configuration: the policy and the limits are in the output's URL, which a file of YAML
// may have too. logger.Sync before the end writes the last records; zap itself syncs behind each record above Error.
func NewLogger(path string) (*zap.Logger, error) {
	if err := registered(); err != nil {
		return nil, err
	}
	config := zap.NewProductionConfig()
	config.OutputPaths = []string{"holdfast://" + path + "?policy=periodic=1s&size=100MiB&backups=7&compress=true"}
	return config.Build()
}
