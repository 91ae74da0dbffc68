package sys

// ProcessIO is what this process has had the kernel read and write so far, by all
// its threads, files, pipes and sockets alike.
type ProcessIO struct {
	ReadCalls, WriteCalls int64
}
