module github.com/holdfast-go/holdfast

// weak.Pointer (a Writer's buffers) and os.Root (directories of ours that strangers can reach) hold it here.
go 1.24.0

require golang.org/x/sys v0.30.0
