package holdfast

import (
	"context"
	"iter"
)

// CopyAll copies files, and folders with all that is in them, from the second of each
// pair to the first.
func CopyAll(ctx context.Context, pairs iter.Seq2[string, string], o CopyOptions) (CopyTotals, error) {
	panic("not yet")
}
