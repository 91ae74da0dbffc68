package holdfast

// streams is the files that are appended to.
type streams struct{}

type fileCounts struct{}
