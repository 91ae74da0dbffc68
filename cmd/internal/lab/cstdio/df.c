//go:build cgo && (linux || darwin)

/* The library is drill/df's; drill.go embeds it, so that go build sees its changes. */
#include "../../../drill/df/df.c"
