package probe

// ProcessIO counts the calls by which all threads of this process have read and written
// so far: files, pipes and sockets.
type ProcessIO struct {
	ReadCalls, WriteCalls int64
}
