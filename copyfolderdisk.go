package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// copyFolderCalls is the calls that CopyAll makes of folders and of links, one system
// call each where the system has it. All but LinkIn go by one folder and a name in it,
// so that no path can be too long, and follow no symbolic link.
type copyFolderCalls interface {
	// OpenForNames opens a folder that need not be readable, for the calls that take a
	// name in it, and for no others.
	OpenForNames(path sys.Name) (fd int, err error)
	// OpenFolderIn opens a folder of a folder; ".." is the one above.
	OpenFolderIn(folder int, name sys.Name) (fd int, err error)
	// StatFolder says what an open folder is, and whether something is mounted on it.
	StatFolder(fd int) (sys.FolderStat, error)
	// ReadNames appends some of a folder's names, and none if there are no more.
	ReadNames(fd int, buf []byte, to []sys.FolderEntry) ([]sys.FolderEntry, error)
	MkdirIn(folder int, name sys.Name, perm uint32) error
	ReadLinkIn(folder int, name sys.Name) (string, error)
	SymlinkIn(target sys.Name, folder int, name sys.Name) error
	LinkIn(fromFolder int, from sys.Name, toFolder int, to sys.Name) error
	ChownIn(folder int, name sys.Name, uid, gid uint32) error
	TimesIn(folder int, name sys.Name) (accessed, modified time.Time, err error)
	// AttributesIn, AttributeIn and SetAttributeIn are of a symbolic link itself.
	AttributesIn(folder int, name sys.Name) (names []string, err error)
	AttributeIn(folder int, name sys.Name, attribute string) ([]byte, error)
	SetAttributeIn(folder int, name sys.Name, attribute string, value []byte) error
	SetTimesIn(folder int, name sys.Name, accessed, modified time.Time) error
}

var _ copyFolderCalls = sys.Disk{}
