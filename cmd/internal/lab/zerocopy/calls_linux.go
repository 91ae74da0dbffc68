package zerocopy

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// mostMoved bounds one call of the kernel's own ways, so that a run can be interrupted. The kernel
// itself stops below 2 GiB (sendfile(2)).
const mostMoved = 16 << 20

var zeroFileWays = append(copyingWays,
	zeroWay{name: bySendfile, does: "sendfile(2)", move: sendfile},
	zeroWay{name: bySplice, does: "splice(2) into a pipe and out of it", move: splice},
	zeroWay{name: byCopyRange, does: "copy_file_range(2)", move: func(ctx context.Context, to, from int, size int64) (int64, error) {
		return moving(ctx, size, func(left int64) (int, error) {
			return unix.CopyFileRange(from, nil, to, nil, int(min(left, mostMoved)), 0)
		})
	}},
	zeroWay{name: byReflink, does: "FICLONE: both files share the bytes on the disk", move: func(_ context.Context, to, from int, _ int64) (int64, error) {
		return 1, study.Reflinks(from, to)
	}},
)

var zeroSocketWays = append(copyingWays,
	zeroWay{name: wholeFile, does: "read(2) of the whole file into new memory, and then write(2)",
		// The memory comes from the kernel, as from malloc(3) for this size.
		move: func(ctx context.Context, to, from int, size int64) (calls int64, err error) {
			memory, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
			if err != nil {
				return 1, err
			}
			calls, err = moving(ctx, size, func(left int64) (int, error) { return unix.Read(from, memory[size-left:]) })
			if err == nil {
				writes := int64(0)
				writes, err = writeWhole(ctx, to, memory)
				calls += writes
			}
			return calls + 2, errors.Join(err, unix.Munmap(memory))
		}},
	zeroWay{name: bySendfile, does: "sendfile(2)", move: sendfile},
	zeroWay{name: bySplice, does: "splice(2) into a pipe and out of it", move: splice},
)

// copyingWays take every byte through memory of this process.
var copyingWays = []zeroWay{
	{name: pieces64, does: "read(2) and write(2) of 64 KiB", move: readWrite(64 << 10)},
	{name: piecesMiB, does: "read(2) and write(2) of 1 MiB", move: readWrite(1 << 20)},
	{name: mmapWrite, does: "mmap(2) of the file, and write(2) of 1 MiB", move: func(ctx context.Context, to, from int, size int64) (calls int64, err error) {
		memory, err := unix.Mmap(from, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return 1, err
		}
		calls, err = moving(ctx, size, func(left int64) (int, error) {
			return unix.Write(to, memory[size-left:][:min(left, 1<<20)])
		})
		return calls + 2, errors.Join(err, unix.Munmap(memory))
	}},
}

// moving repeats step until size bytes were moved; step says how many it has moved.
func moving(ctx context.Context, size int64, step func(left int64) (int, error)) (calls int64, err error) {
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return calls, err
		}
		n, err := step(left)
		calls++
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return calls, err
		case n == 0:
			return calls, io.ErrUnexpectedEOF
		default:
			left -= int64(n)
		}
	}
	return calls, nil
}

func readWrite(buffer int) func(context.Context, int, int, int64) (int64, error) {
	return func(ctx context.Context, to, from int, size int64) (int64, error) {
		block, writes := make([]byte, buffer), int64(0)
		reads, err := moving(ctx, size, func(left int64) (int, error) {
			n, err := unix.Read(from, block[:min(left, int64(buffer))])
			if err != nil || n == 0 {
				return n, err
			}
			w, err := writeWhole(ctx, to, block[:n])
			writes += w
			return n, err
		})
		return reads + writes, err
	}
}

func writeWhole(ctx context.Context, to int, block []byte) (calls int64, err error) {
	size := int64(len(block))
	return moving(ctx, size, func(left int64) (int, error) { return unix.Write(to, block[size-left:]) })
}

func sendfile(ctx context.Context, to, from int, size int64) (int64, error) {
	return moving(ctx, size, func(left int64) (int, error) { return unix.Sendfile(to, from, nil, int(min(left, mostMoved))) })
}

// pipeSize is the largest pipe of an unprivileged process by default
// (/proc/sys/fs/pipe-max-size, pipe(7)); with the usual 64 KiB it would take sixteen
// times as many calls.
const pipeSize = 1 << 20

func splice(ctx context.Context, to, from int, size int64) (calls int64, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, unix.Close(pipe[0]), unix.Close(pipe[1])) }()
	room, err := unix.FcntlInt(uintptr(pipe[1]), unix.F_SETPIPE_SZ, pipeSize)
	if err != nil { // no more is allowed: it keeps what it has
		room, err = unix.FcntlInt(uintptr(pipe[1]), unix.F_GETPIPE_SZ, 0)
	}
	if err != nil {
		return 2, err
	}
	out := int64(0)
	in, err := moving(ctx, size, func(left int64) (int, error) {
		n, err := unix.Splice(from, nil, pipe[1], nil, int(min(left, int64(room))), unix.SPLICE_F_MOVE)
		if err != nil || n == 0 {
			return int(n), err
		}
		drained, err := moving(ctx, int64(n), func(left int64) (int, error) {
			n, err := unix.Splice(pipe[0], nil, to, nil, int(left), unix.SPLICE_F_MOVE|unix.SPLICE_F_MORE)
			return int(n), err
		})
		out += drained
		return int(n), err
	})
	return in + out + 4, err
}
