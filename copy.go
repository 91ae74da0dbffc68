package holdfast

import (
	"context"
	"iter"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// CopyAll copies files, and folders with all that is in them, from the second of each
// pair to the first.
func CopyAll(ctx context.Context, pairs iter.Seq2[string, string], o CopyOptions) (CopyTotals, error) {
	if err := o.Validate(); err != nil {
		return CopyTotals{}, err
	}
	return copyTrees(ctx, sys.Disk{}, pairs, o)
}
