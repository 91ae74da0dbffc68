package volume

// A Kind is a file system with its options, by its name: ext2, ext3, ext4 (data
// ordered), ext4-writeback, ext4-journal, ext4-nojournal, xfs, btrfs, f2fs, jfs, bfs
// or tmpfs.
type Kind struct {
	Name string
	Type string // as mount(8) calls it, such as ext4
	// Program makes it, and Debian is the package that has that program.
	Program, Debian string
	Make            []string // arguments of Program, before the image's name
	Check           []string // the program that checks it, with its arguments before the image's name; nil: there is none
	Options         string   // of the mount
	Least           int64    // bytes of the smallest image
}

// Kinds returns all that are known, whether or not they can be made here.
func Kinds() []Kind { panic("not yet") }

// Parse reads names between commas, such as ext4,xfs; it returns each once.
func Parse(text string) ([]Kind, error) { panic("not yet") }

// Can returns nil if the file system can be made and mounted here, or a
// [*MissingError].
func (k Kind) Can() error { panic("not yet") }

// A MissingError says why a file system can't be had here.
type MissingError struct {
	Kind    string
	Why     string // one clause, such as "this kernel has no jfs"
	Package string // of Debian, which would help; or empty
	Root    bool   // only root can
	Kernel  bool   // the kernel has no driver: User-Mode Linux may have one
}

func (e *MissingError) Error() string { return e.Kind + ": " + e.Why }

// A DamageError says what the check of a file system found when it was taken down.
type DamageError struct {
	Kind, Found string
}

func (e *DamageError) Error() string { return "the " + e.Kind + " is damaged: " + e.Found }
