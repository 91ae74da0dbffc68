package sys

// A DirEntry is a name that a directory has, and what readdir(3) says of it.
type DirEntry struct {
	Name  Name
	Inode uint64
	Kind  uint32 // as in st_mode & S_IFMT; 0 where the system does not report it
}
