// Package cstdio reads and writes files in C, a byte or an element a call. It has raw system calls,
// the C library's stdio, and a small library of its own (drill/df). A loop is one call from Go: the
// language boundary is not in it.
//
// It measures nothing and judges nothing: the caller puts the clock around [Create] or
// [Open], [Stream.Write] or [Stream.Read], [Stream.Flush] and [Stream.Close]. Loops write a pattern
// ([Fill]) and sum up the bytes they read ([Sum]), so no loop can leave bytes out unseen.
//
// Without cgo there is no C side: [Missing] says so, and all else fails with an
// error that wraps [errors.ErrUnsupported].
//
// Note: the C library locks its streams only in a process that has threads. A Go
// process has threads, so fgetc and fputc pay for their locks here. They do in any C
// program with threads, and not in one without.
package cstdio

import (
	"fmt"
	"slices"

	_ "github.com/holdfast-go/holdfast/cmd/drill" // embeds drill/df: go build sees no other trace of what a C file includes
)

// A Method is a pair of calls, one to read and one to write.
type Method string

// The methods.
const (
	Raw          Method = "raw"           // read(2) and write(2)
	Fgetc        Method = "fgetc"         // fgetc and fputc
	Getc         Method = "getc"          // getc and putc, which may be macros
	GetcUnlocked Method = "getc_unlocked" // getc_unlocked and putc_unlocked
	Fread        Method = "fread"         // fread and fwrite
	DFgetc       Method = "dfgetc"        // dfgetc and dfputc, inlined
	DFread       Method = "dfread"        // dfread and dfwrite
)

var methods = []Method{Raw, Fgetc, Getc, GetcUnlocked, Fread, DFgetc, DFread}

// Methods returns all methods.
func Methods() []Method { return slices.Clone(methods) }

// Writes returns the name of the call that writes.
func (m Method) Writes() string {
	return map[Method]string{
		Raw: "write", Fgetc: "fputc", Getc: "putc", GetcUnlocked: "putc_unlocked", Fread: "fwrite", DFgetc: "dfputc", DFread: "dfwrite",
	}[m]
}

// Reads returns the name of the call that reads.
func (m Method) Reads() string {
	if m == Raw {
		return "read"
	}
	return string(m)
}

// elements reports whether a call can take more than one byte.
func (m Method) elements() bool { return m == Raw || m == Fread || m == DFread }

// df reports whether the method is of the library in df.h.
func (m Method) df() bool { return m == DFgetc || m == DFread }

// A Mode is when a buffer is written out: setvbuf's second argument.
type Mode int

// The modes.
const (
	Full Mode = iota // _IOFBF: when it is full
	Line             // _IOLBF: also after each newline; the pattern has one in 251 bytes
	None             // _IONBF: there is no buffer
)

// String returns setvbuf's name of the mode.
func (m Mode) String() string {
	if m < Full || m > None {
		return fmt.Sprintf("mode %d", int(m))
	}
	return [...]string{"_IOFBF", "_IOLBF", "_IONBF"}[m]
}

// A Setup is how a stream reads or writes.
type Setup struct {
	Method Method
	Mode   Mode
	Buffer int // in bytes; 0 is the library's own choice (mostly 4096), or none with None

	// A call is for Count elements of Size bytes each. 0 is 1.
	Size, Count int

	// Keep is to write over what is in the file, and not to make it empty first.
	Keep bool
}

// perCall returns how many bytes a call is for.
func (s Setup) perCall() int { return max(1, s.Size) * max(1, s.Count) }

// Most is the largest buffer, and the most bytes that a call is for.
const Most = 1 << 30

// Check returns an error that says what is wrong with the setup, or nil.
func (s Setup) Check() error {
	switch {
	case !slices.Contains(methods, s.Method):
		return fmt.Errorf("unknown method %q: use one of %q", s.Method, methods)
	case s.Mode < Full || s.Mode > None:
		return fmt.Errorf("unknown %v: use 0 (full), 1 (line) or 2 (none)", s.Mode)
	case s.Method == Raw && s.Mode != None:
		return fmt.Errorf("mode %v with raw system calls: they have no buffer, use %v", s.Mode, None)
	case s.Method.df() && s.Mode == Line:
		return fmt.Errorf("mode %v with %s: its streams know no lines, use %v or %v", s.Mode, s.Method, Full, None)
	case s.Buffer < 0 || s.Buffer > Most:
		return fmt.Errorf("buffer of %d bytes: use 0 to %d", s.Buffer, Most)
	case s.Mode == None && s.Buffer != 0:
		return fmt.Errorf("buffer of %d bytes with mode %v: use 0", s.Buffer, s.Mode)
	case s.Size < 0 || s.Count < 0 || s.Size > Most || s.Count > Most || s.perCall() > Most:
		return fmt.Errorf("%d elements of %d bytes a call: use 1 to %d bytes in all", s.Count, s.Size, Most)
	case s.perCall() > 1 && !s.Method.elements():
		return fmt.Errorf("%d bytes a call with %s: it takes one", s.perCall(), s.Method)
	}
	return nil
}
