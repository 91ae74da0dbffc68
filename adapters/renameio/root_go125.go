//go:build go1.25

package renameio

import "os"

// SymlinkRoot is [Symlink] of a name in a directory out of which no symbolic link leads. Where the new one
// leads is not looked at.
func SymlinkRoot(root *os.Root, oldname, newname string) error {
	return symlink(root, oldname, newname, root.Symlink, root.Remove)
}
