//go:build !unix

package copies

import "io/fs"

func allocated(fs.FileInfo) (bytes int64, ok bool) { return 0, false }
