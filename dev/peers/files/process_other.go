//go:build !unix

package files

func raiseDescriptors(uint64) error { return nil } // there is no such limit

func limitDescriptors(uint64) error {
	return &unsupported{"descriptors can't be limited here"}
}

func dropRoot(string) error {
	return &unsupported{"a process can't be another user's here"}
}
