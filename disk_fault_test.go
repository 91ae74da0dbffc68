package holdfast

import "github.com/holdfast-go/holdfast/internal/fault"

var _ disk = (*fault.Disk)(nil)
