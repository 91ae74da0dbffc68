module github.com/holdfast-go/holdfast/cmd/dev/adapters

go 1.25.0

replace (
	github.com/holdfast-go/holdfast => ../..
	github.com/holdfast-go/holdfast/cmd => ../../cmd
)

require (
	github.com/holdfast-go/holdfast v0.0.0
	github.com/rs/zerolog v1.35.1
	go.uber.org/zap v1.28.0
	gopkg.in/natefinch/lumberjack.v2 v2.2.1
)

require (
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
