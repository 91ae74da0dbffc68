module github.com/holdfast-go/holdfast/adapters/zerolog

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	github.com/rs/zerolog v1.35.1
)

require (
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
