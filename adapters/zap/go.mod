module github.com/holdfast-go/holdfast/adapters/zap

go 1.24.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	go.uber.org/zap v1.18.1
)

require (
	go.uber.org/atomic v1.7.0 // indirect
	go.uber.org/multierr v1.6.0 // indirect
	golang.org/x/sys v0.30.0 // indirect
)
