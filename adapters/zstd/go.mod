module github.com/holdfast-go/holdfast/adapters/zstd

go 1.25.0

replace github.com/holdfast-go/holdfast => ../..

require (
	github.com/holdfast-go/holdfast v0.0.0
	github.com/klauspost/compress v1.19.1
)

require golang.org/x/sys v0.47.0 // indirect
