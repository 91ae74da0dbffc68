package report

import (
	"io"

	"github.com/holdfast-go/holdfast/internal/result"
)

func HTML(w io.Writer, run result.Run) error { return nil }
