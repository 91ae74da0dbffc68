module github.com/holdfast-go/holdfast/adapters/zap

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	go.uber.org/zap v1.28.0
)

require (
	go.uber.org/multierr v1.10.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
