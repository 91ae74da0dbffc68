package latency

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// A stamped record holds when it was made and which one it is, and ends with the
// checksum of all that. A reader needs nothing else to see that it is right.
//
//	time 8 bytes | number 8 bytes | filling | CRC-32C 4 bytes
type stamped []byte

const leastStamped = 20

func newStamped(size int64) stamped {
	r := make(stamped, size)
	for i := range r {
		r[i] = byte('a' + i%26)
	}
	return r
}

// fill makes it the record of that number and time.
func (r stamped) fill(number int64, at time.Duration) []byte {
	binary.LittleEndian.PutUint64(r, uint64(at))
	binary.LittleEndian.PutUint64(r[8:], uint64(number))
	body := r[:len(r)-crc32.Size]
	binary.LittleEndian.PutUint32(r[len(body):], crc32.Checksum(body, castagnoli()))
	return r
}

// wrong says why it is not the record of that number, or is empty.
func (r stamped) wrong(number int64) string {
	body := r[:len(r)-crc32.Size]
	if binary.LittleEndian.Uint32(r[len(body):]) != crc32.Checksum(body, castagnoli()) {
		return fmt.Sprintf("record %d has wrong bytes", number)
	}
	if got := int64(binary.LittleEndian.Uint64(r[8:])); got != number {
		return fmt.Sprintf("record %d stands where record %d is due", got, number)
	}
	return ""
}

// readStamped returns how many whole records stand in the file, from the first on
// and in their order, and how many bytes of one more. Anything else in it is a
// *trial.ContentError.
func readStamped(path string, size int64) (records, torn int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 256<<10)
	for r := make(stamped, size); ; records++ {
		n, err := io.ReadFull(in, r)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return records, int64(n), nil
		case err != nil:
			return records, 0, fmt.Errorf("read back: %w", err)
		}
		if reason := r.wrong(records); reason != "" {
			return records, 0, &trial.ContentError{Offset: records * size, Reason: reason}
		}
	}
}

// checkStamped returns a *trial.ContentError unless the file holds exactly the given number of
// whole records.
func checkStamped(path string, records, size int64) error {
	got, torn, err := readStamped(path, size)
	if err == nil && (got != records || torn != 0) {
		err = &trial.ContentError{Offset: got * size, Reason: fmt.Sprintf("the file has %d records and %d bytes, and %d records were written", got, torn, records)}
	}
	return err
}

// castagnoli is the polynomial that processors have an instruction for. Its tables are made
// at the first use, not at the start of every command.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }
