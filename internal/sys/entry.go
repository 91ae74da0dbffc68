package sys

// A FolderEntry is a name that a folder has, and what readdir(3) says of it.
type FolderEntry struct {
	Name  Name
	Inode uint64
	Kind  uint32 // as in st_mode & S_IFMT; 0 where the system does not tell
}
