package sys

// A DirEntry is a name in a directory, as in readdir(3).
type DirEntry struct {
	Name  Name
	Inode uint64
	Kind  uint32 // as in st_mode & S_IFMT; 0 where the system does not report it
}
