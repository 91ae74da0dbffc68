module github.com/holdfast-go/holdfast/cmd/dev

go 1.26.0

replace (
	github.com/holdfast-go/holdfast => ..
	github.com/holdfast-go/holdfast/cmd => ../cmd
)

require (
	github.com/holdfast-go/holdfast v0.1.0
	golang.org/x/mod v0.41.0
)

require golang.org/x/sys v0.47.0
