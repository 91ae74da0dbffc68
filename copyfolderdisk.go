package holdfast

// copyFolderCalls is the calls that CopyAll makes of folders.
type copyFolderCalls interface{}
