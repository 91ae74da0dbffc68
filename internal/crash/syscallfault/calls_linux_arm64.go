package syscallfault

// olderCalls are those of other architectures.
func olderCalls() map[int32]operand { return nil }
