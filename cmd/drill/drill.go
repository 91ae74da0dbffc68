// Package drill holds an exercise and its solution: a buffer of one's own between a
// program and read(2) and write(2). README.md has the steps.
//
// It has no code of its own. It embeds the C sources for the command that checks and times what a
// student wrote. They are also for go build, which does not see that cgo includes them.
package drill

import "embed"

// Sources are the files that a student starts from (c) and the library that solves the
// exercise (df).
//
//go:embed c/diy_buffering.c c/diy_buffering.h df/df.c df/df.h
var Sources embed.FS
