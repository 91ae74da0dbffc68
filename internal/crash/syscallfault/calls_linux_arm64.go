package syscallfault

// olderCalls are other architectures' calls.
func olderCalls() map[int32]operand { return nil }
