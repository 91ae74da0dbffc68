module github.com/holdfast-go/holdfast/adapters/logrus

go 1.24.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	github.com/sirupsen/logrus v1.8.3
)

require golang.org/x/sys v0.30.0 // indirect
