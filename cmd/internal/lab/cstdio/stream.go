//go:build cgo && (linux || darwin)

package cstdio

// #cgo CFLAGS: -std=c11 -Wall -Wextra -Wconversion -O2
// #include <stdlib.h>
// #include "loop.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// C's names of the methods and the modes.
var (
	methodCodes = map[Method]C.enum_method{
		Raw: C.RAW, Fgetc: C.FGETC, Getc: C.GETC, GetcUnlocked: C.GETC_UNLOCKED, Fread: C.FREAD, DFgetc: C.DFGETC, DFread: C.DFREAD,
	}
	modeCodes = map[Mode]C.enum_mode{Full: C.FULL, Line: C.LINE, None: C.NONE}
)

// Missing says why there is no C side, or is empty.
func Missing() string { return "" }

// A Stream is a file that C reads or writes. One goroutine at a time may use it.
// Only Close frees its memory in C.
type Stream struct {
	setup  Setup
	path   string
	stream *C.struct_stream // nil when closed
}

// Create makes a file for writing. It empties an existing one, unless the setup is to
// keep it.
func Create(path string, s Setup) (*Stream, error) { return open(path, s, 1) }

// Open opens a file for reading.
func Open(path string, s Setup) (*Stream, error) { return open(path, s, 0) }

func open(path string, s Setup, writing C.int) (*Stream, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	setup := C.struct_setup{
		method: methodCodes[s.Method], mode: modeCodes[s.Mode],
		buffer: C.size_t(s.Buffer), size: C.size_t(max(1, s.Size)), count: C.size_t(max(1, s.Count)),
	}
	if s.Keep {
		setup.keep = 1
	}
	f := &Stream{setup: s, path: path}
	code := C.stream_open(&f.stream, (*C.char)(unsafe.Pointer(name)), writing, setup)
	if err := f.failed("open", code); err != nil {
		return nil, err
	}
	return f, nil
}

// failed turns what C returned into an error.
func (f *Stream) failed(op string, code C.int) error {
	if code == 0 {
		return nil
	}
	return &os.PathError{Op: op, Path: f.path, Err: syscall.Errno(code)}
}

// Write writes the pattern's next n bytes, and returns how many of them the
// calls took that did not fail. The first that fails is the last.
func (f *Stream) Write(n int64) (int64, error) {
	calls, err := f.calls("write", n, 1)
	if err != nil {
		return 0, err
	}
	var made C.int64_t
	code := C.stream_write(f.stream, C.int64_t(calls), &made)
	return int64(made) * int64(f.setup.perCall()), f.failed(f.setup.Method.Writes(), code)
}

// Read reads and sums up n bytes. It returns how many bytes the filled calls gave. These are fewer
// than n only at the end of the file, which is no error, or with an error.
func (f *Stream) Read(n int64) (int64, error) {
	calls, err := f.calls("read", n, 0)
	if err != nil {
		return 0, err
	}
	var made C.int64_t
	code := C.stream_read(f.stream, C.int64_t(calls), &made)
	return int64(made) * int64(f.setup.perCall()), f.failed(f.setup.Method.Reads(), code)
}

// calls returns how many calls n bytes are, if the stream is open for them.
func (f *Stream) calls(op string, n int64, writing C.int) (int64, error) {
	if f.stream == nil {
		return 0, &os.PathError{Op: op, Path: f.path, Err: os.ErrClosed}
	}
	if f.stream.writing != writing {
		return 0, &os.PathError{Op: op, Path: f.path, Err: syscall.EBADF}
	}
	per := int64(f.setup.perCall())
	if n < 0 || n%per != 0 {
		return 0, fmt.Errorf("%s %s: %d bytes are not a multiple of a call's %d bytes", op, f.path, n, per)
	}
	return n / per, nil
}

// Sum returns the sum of the bytes that Read counted.
func (f *Stream) Sum() Sum {
	if f.stream == nil {
		return Sum{}
	}
	return Sum{uint64(f.stream.ones), uint64(f.stream.twos)}
}

// Flush hands what Write left in memory to the kernel.
func (f *Stream) Flush() error {
	if _, err := f.calls("flush", 0, 1); err != nil {
		return err
	}
	return f.failed("flush", C.stream_flush(f.stream))
}

// Sync makes durable what the kernel has of the file. Package os knows how on each system, and takes a descriptor of
// its own.
func (f *Stream) Sync() error {
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return os.NewSyscallError("dup", err)
	}
	own := os.NewFile(uintptr(fd), f.path)
	return errors.Join(own.Sync(), own.Close())
}

// Fd returns the stream's descriptor, for posix_fadvise.
// It is the stream's own until Close.
func (f *Stream) Fd() uintptr {
	if f.stream == nil {
		return ^uintptr(0)
	}
	return uintptr(f.stream.fd)
}

// Close flushes and closes the file, and frees the stream whatever it returns.
func (f *Stream) Close() error {
	if f.stream == nil {
		return &os.PathError{Op: "close", Path: f.path, Err: os.ErrClosed}
	}
	code := C.stream_close(f.stream)
	f.stream = nil
	return f.failed("close", code)
}

// Copy reads from one file and writes to another in C, len(buffer) bytes a call. It ends at the end
// of the file, or when at least until bytes are copied. It returns the number of bytes written.
func Copy(to, from *os.File, buffer []byte, until int64) (copied int64, err error) {
	if len(buffer) == 0 {
		return 0, errors.New("copy: the buffer is empty")
	}
	var n C.int64_t
	code := C.copy_loop(C.int(to.Fd()), C.int(from.Fd()), (*C.uchar)(unsafe.SliceData(buffer)), C.size_t(len(buffer)), C.int64_t(until), &n)
	if code != 0 {
		err = &os.PathError{Op: "copy", Path: to.Name(), Err: syscall.Errno(code)}
	}
	return int64(n), err
}
