module github.com/holdfast-go/holdfast/adapters/renameio

go 1.24.0

require github.com/holdfast-go/holdfast v0.1.0

require golang.org/x/sys v0.30.0 // indirect
