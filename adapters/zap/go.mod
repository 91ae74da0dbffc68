module github.com/holdfast-go/holdfast/adapters/zap

go 1.24.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	go.uber.org/zap v1.9.1
)

require (
	github.com/pkg/errors v0.8.1 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	go.uber.org/atomic v1.4.0 // indirect
	go.uber.org/multierr v1.1.0 // indirect
	golang.org/x/sys v0.30.0 // indirect
)
