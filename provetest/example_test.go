//go:build go1.25

package provetest_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/provetest"
)

// TestStore is how storage code is crashed in its own tests.
func TestStore(t *testing.T) {
	provetest.Test(t, workload(bugs{}))
}

// workload is the store in use: three goroutines, each with keys of its own.
func workload(b bugs) provetest.Workload {
	return provetest.Workload{
		Write: func(dir string, log *provetest.Log) error {
			s, err := openStore(dir, b)
			if err != nil {
				return err
			}
			errs := make([]error, 3)
			var group sync.WaitGroup
			for i := range errs {
				group.Go(func() {
					for n := 0; errs[i] == nil; n++ {
						key, value := fmt.Sprintf("%d/%d", i, n%5), strconv.FormatInt(time.Now().UnixNano(), 36)
						log.Begin(key, value)
						if errs[i] = s.Put(key, value); errs[i] == nil {
							log.Ack(key, value)
						}
					}
				})
			}
			group.Wait()
			return errors.Join(errs...)
		},
		Read: func(dir string) (map[string]string, error) {
			s, err := openStore(dir, b)
			if err != nil {
				return nil, err
			}
			return s.values, s.file.Close()
		},
		Synced: true,
		Time:   300 * time.Millisecond,
	}
}

// A store keeps values in a file: a line with a checksum, a key and a value for each Put.
type store struct {
	mu     sync.Mutex
	file   *os.File
	out    *bufio.Writer
	values map[string]string
	err    error // a sync that failed has lost what was written, whatever the next one says
	bugs   bugs
}

// Put returns when the value is on the disk.
func (s *store) Put(key, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	line := fmt.Sprintf("%q %q", key, value)
	_, err := fmt.Fprintf(s.out, "%08x %s\n", crc32.ChecksumIEEE([]byte(line)), line)
	if !s.bugs.noFlush && err == nil {
		err = s.out.Flush()
	}
	if !s.bugs.noSync && err == nil {
		err = s.file.Sync()
	}
	if s.bugs.again && err != nil {
		err = s.file.Sync()
	}
	if s.err = err; s.bugs.deaf {
		s.err, err = nil, nil
		s.out.Reset(s.file)
	}
	s.values[key] = value
	return err
}

// openStore reads the lines up to the first that is not whole, and goes on behind them.
func openStore(dir string, b bugs) (*store, error) {
	f, err := os.OpenFile(filepath.Join(dir, "values"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	s := &store{file: f, out: bufio.NewWriter(f), values: map[string]string{}, bugs: b}
	data, err := os.ReadFile(f.Name())
	end := int64(0)
	for line := range bytes.Lines(data) {
		var sum uint32
		var key, value string
		n, _ := fmt.Sscanf(string(line), "%08x %q %q\n", &sum, &key, &value)
		if n < 3 || line[len(line)-1] != '\n' || sum != crc32.ChecksumIEEE(line[9:len(line)-1]) {
			break
		}
		s.values[key] = value
		end += int64(len(line))
	}
	d, dirErr := os.Open(dir)
	if err = errors.Join(err, f.Truncate(end), dirErr); err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	return s, err
}

// bugs are errors that such a store may have; the tests plant them.
type bugs struct {
	noFlush bool // Put returns with bytes in memory
	noSync  bool // and with bytes in the kernel
	deaf    bool // it goes on whatever its calls return
	again   bool // it syncs again when a sync has failed
}
