module github.com/holdfast-go/holdfast/adapters/zstd

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	github.com/klauspost/compress v1.19.1
)

require golang.org/x/sys v0.47.0 // indirect
