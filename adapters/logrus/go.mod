module github.com/holdfast-go/holdfast/adapters/logrus

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	github.com/sirupsen/logrus v1.10.2
)

require golang.org/x/sys v0.47.0 // indirect
