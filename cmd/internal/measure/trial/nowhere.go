package trial

import "github.com/holdfast-go/holdfast/stats"

// nowhere is a [Target] that does nothing with any record. A trial with it takes what
// measuring itself takes.
type nowhere struct{}

func (nowhere) Write(record []byte) (int, error) { return len(record), nil }
func (nowhere) Flush() error                     { return nil }
func (nowhere) Sync() error                      { return nil }
func (nowhere) Close() error                     { return nil }
func (nowhere) Written() int64                   { return 0 }
func (nowhere) Stats() stats.Counts              { return stats.Counts{} }
