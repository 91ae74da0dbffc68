package uml

import (
	"bytes"
	"io"
	"testing"
	"time"
)

// TestLineHandsBytesOnAsTheyAre sends the guest every byte, and wants them back, many
// more than a terminal holds, and then the end of the guest.
func TestLineHandsBytesOnAsTheyAre(t *testing.T) {
	k := kernel(t)
	line, inside, err := NewLine()
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	ended := make(chan error, 1)
	g := Guest{Command: guestWord, Share: t.TempDir(), Limit: time.Minute, Line: inside, Task: task(t, chore{Does: "echo"})}
	go func() { ended <- k.Run(t.Context(), g) }()
	if _, err := io.ReadFull(line, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	sent := make([]byte, 256)
	for i := range sent {
		sent[i] = byte(i)
	}
	if _, err := line.Write(sent); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(line)
	if err != nil || !bytes.Equal(got, bytes.Repeat(sent, echoes)) {
		t.Errorf("%d bytes came back of %d, or others; %v", len(got), len(sent)*echoes, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
