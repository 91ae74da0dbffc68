package advise

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TestANameIsReadAsThePolicy: with named policies and others.
func TestANameIsReadAsThePolicy(t *testing.T) {
	odd := holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)}
	for _, p := range []holdfast.Policy{
		holdfast.Unbuffered(), holdfast.Buffered(4 * holdfast.KiB), holdfast.Periodic(time.Second), holdfast.Periodic(10 * time.Millisecond),
		holdfast.Durable(), holdfast.EachDurable(), odd,
	} {
		name := Name(p)
		if got, err := holdfast.ParsePolicy(name); err != nil || got != p {
			t.Errorf("%v is named %q, which is read as %v (%v)", p, name, got, err)
		}
		if strings.Contains(name, "sync=") != (p == odd) {
			t.Errorf("%v is named %q", p, name)
		}
	}
}
