// Package permission computes the permissions that a new file may have when it replaces another.
package permission

import "encoding/binary"

const (
	SetUser  = 0o4000
	SetGroup = 0o2000 // on a directory: new files get its group
)

// Private is the permissions of a file until its permitted users are known.
const Private = 0o600

// By these rules a new file lets no user read bytes that the user could not read in the old one.
// Its permissions apply to users of its own owner, group and list.

// WithoutGroup returns the permissions for a file of another group. Users of the new group were
// others before, and users of the old group are others now: both classes get the permissions that
// both had.
func WithoutGroup(perm uint32) uint32 {
	both := perm >> 3 & perm & 7
	return perm&^0o77 | both<<3 | both
}

// The format of an access control list (acl(5), linux/posix_acl_xattr.h): a version, and entries of
// 8 bytes with a kind of user, its permissions and its number.
const (
	listBegin, listEntry = 4, 8

	listUser, listGroup, listNamedGroup, listMask, listOther = 0x02, 0x04, 0x08, 0x10, 0x20
)

// listEntries calls do with the kind and the permissions of each entry.
func listEntries(list []byte, do func(kind uint16, perm []byte)) {
	for at := listBegin; at+listEntry <= len(list); at += listEntry {
		do(binary.LittleEndian.Uint16(list[at:]), list[at+2:at+4])
	}
}

// ListWithoutGroup changes a list for a file of another group, as WithoutGroup does. The new group
// gets nothing, and others get no more than the old group had.
func ListWithoutGroup(list []byte) {
	group, mask := uint16(0), uint16(7)
	listEntries(list, func(kind uint16, perm []byte) {
		switch kind {
		case listGroup:
			group = binary.LittleEndian.Uint16(perm)
			binary.LittleEndian.PutUint16(perm, 0)
		case listMask:
			mask = binary.LittleEndian.Uint16(perm)
		}
	})
	listEntries(list, func(kind uint16, perm []byte) {
		if kind == listOther {
			binary.LittleEndian.PutUint16(perm, binary.LittleEndian.Uint16(perm)&group&mask)
		}
	})
}

// OtherOf returns the permissions of others in a list.
func OtherOf(list []byte) (other uint32) {
	listEntries(list, func(kind uint16, perm []byte) {
		if kind == listOther {
			other = uint32(binary.LittleEndian.Uint16(perm)) & 7
		}
	})
	return other
}

// WithoutList returns the permissions for a file that does not get the old file's list. The users
// in the list are unknown, so all get the permissions that each of them had.
func WithoutList(perm uint32, list []byte) uint32 {
	if len(list) == 0 {
		return perm
	}
	all, mask := uint16(0), uint16(7)
	listEntries(list, func(kind uint16, perm []byte) {
		switch kind {
		case listMask:
			mask = binary.LittleEndian.Uint16(perm)
		case listOther:
			all = binary.LittleEndian.Uint16(perm)
		}
	})
	listEntries(list, func(kind uint16, perm []byte) {
		switch kind {
		case listUser, listGroup, listNamedGroup:
			all &= binary.LittleEndian.Uint16(perm) & mask
		}
	})
	each := uint32(all & 7)
	return perm&^0o77 | each<<3 | each
}

// Within removes the permissions by which the group and others could read bytes that they could not
// read in the old file.
func Within(perm, old uint32) uint32 {
	for _, class := range []uint32{0o070, 0o007} {
		if old&class&0o044 == 0 {
			perm &^= class
		}
	}
	return perm
}

// The extended attributes of a file's access control list, and of the list that a directory gives
// to new names: acl(5).
const (
	AccessList  = "system.posix_acl_access"
	DefaultList = "system.posix_acl_default"
)
