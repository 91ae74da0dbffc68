package trial

import (
	"errors"
	"os"
)

// memoryWrites is how many bytes [PrepareMemory] writes for each that it is asked
// for.
const memoryWrites = 2

// PrepareMemory gives the page cache as much memory as a file of size bytes in
// the folder will take, in small pieces and in large ones, by writing such files
// and removing them again. A virtual machine gives free memory back to its host,
// and to get it again takes up to ten times as long as to write to it: without
// this a short trial measures the host.
func PrepareMemory(folder string, size int64) error {
	small, err := fill(folder, size, 64<<10)
	if err != nil {
		return err
	}
	large, err := fill(folder, size, 256<<10)
	if err != nil {
		return errors.Join(err, os.Remove(small))
	}
	// The last first: a bfs has the room of any other file again only when it is
	// mounted anew.
	return errors.Join(os.Remove(large), os.Remove(small))
}

// fill writes a new file of about size bytes, a block at a time. On an error no
// file is left.
func fill(folder string, size int64, block int) (name string, err error) {
	f, err := os.CreateTemp(folder, "m-") // a bfs takes 14 characters
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

// MemoryBytes is the most that a trial holds in the process's own memory: the
// Writer's two buffers, and the records of each writer, which the check makes once
// more.
func (a Append) MemoryBytes() int64 {
	return 2*int64(a.Policy.Buffer) + 2*int64(a.Writers)*max(a.RecordBytes, patternSize)
}
