package trial

import (
	"errors"
	"os"
)

// memoryWrites is how many bytes [PrepareMemory] writes for each byte of size.
const memoryWrites = 2

// PrepareMemory gives the page cache as much memory as a file of size bytes in the
// directory will take, in small and large pieces. It writes such files and removes them
// again. A virtual machine gives free memory back to its host. To get it again takes up
// to ten times as long as to write to it: without this a short trial measures the host.
func PrepareMemory(dir string, size int64) error {
	small, err := fill(dir, size, 64<<10)
	if err != nil {
		return err
	}
	large, err := fill(dir, size, 256<<10)
	if err != nil {
		return errors.Join(err, os.Remove(small))
	}
	// The last first: a bfs frees the room of any other file only when it is mounted
	// again.
	return errors.Join(os.Remove(large), os.Remove(small))
}

// fill writes a new file of about size bytes, a block at a time. On an error no
// file is left.
func fill(dir string, size int64, block int) (name string, err error) {
	f, err := os.CreateTemp(dir, "m-") // a bfs takes 14 characters
	if err != nil {
		return "", err
	}
	b := make([]byte, min(int64(block), size))
	for n := int64(0); n < size && err == nil; n += int64(len(b)) {
		_, err = f.Write(b)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// MemoryBytes returns the most that a trial holds in the process's own memory. It is the Writer's
// two buffers, and twice the records of each writer: the check makes them again.
func (a Append) MemoryBytes() int64 {
	return 2*int64(a.Policy.Buffer) + 2*int64(a.Writers)*max(a.RecordBytes, patternSize)
}
