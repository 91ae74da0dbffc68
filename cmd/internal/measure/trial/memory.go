package trial

import (
	"errors"
	"os"
)

// memoryWrites is the number of bytes that [PrepareMemory] writes for each byte of size.
const memoryWrites = 2

// PrepareMemory gives the page cache as much memory as a file of size bytes in the
// directory will need, in small and large pieces. It writes such files and removes them again. A
// virtual machine returns free memory to its host, and getting it back takes up to ten times as long as
// writing to it: without this a short trial measures the host.
func PrepareMemory(dir string, size int64) error {
	small, err := fill(dir, size, 64<<10)
	if err != nil {
		return err
	}
	large, err := fill(dir, size, 256<<10)
	if err != nil {
		return errors.Join(err, os.Remove(small))
	}
	// Remove the last file first: a bfs frees the room of any other file only when it is mounted again.
	return errors.Join(os.Remove(large), os.Remove(small))
}

// fill writes a new file of about size bytes, a block at a time. On an error no
// file is left.
func fill(dir string, size int64, block int) (name string, err error) {
	f, err := os.CreateTemp(dir, "m-") // bfs allows names of 14 characters
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

// MemoryBytes returns the largest memory of the process's own that a trial holds: the Writer's two
// buffers, and twice the records of each writer, because the check makes them again.
func (a Append) MemoryBytes() int64 {
	return 2*int64(a.Policy.Buffer) + 2*int64(a.Writers)*max(a.RecordBytes, patternSize)
}
