package trial

import "github.com/holdfast-go/holdfast/stats"

// nowhere is a [Target] that discards every record. A trial with it costs only the measuring itself.
type nowhere struct{}

func (nowhere) Write(record []byte) (int, error) { return len(record), nil }
func (nowhere) Flush() error                     { return nil }
func (nowhere) Sync() error                      { return nil }
func (nowhere) Close() error                     { return nil }
func (nowhere) Written() int64                   { return 0 }
func (nowhere) Stats() stats.Counts              { return stats.Counts{} }
