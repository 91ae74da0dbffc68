module github.com/holdfast-go/holdfast

// os.Root (directories of ours that strangers can reach) holds it here.
go 1.24.0

require golang.org/x/sys v0.30.0
