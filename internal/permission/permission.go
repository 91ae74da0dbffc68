// Package permission says which permissions a new file may have that replaces another.
package permission

import "encoding/binary"

const (
	SetUser  = 0o4000
	SetGroup = 0o2000 // of a directory: new names get its group
)

// Private is the permissions of a file while it is not known which users may read it.
const Private = 0o600

// By these rules a new file lets no user read what that user could not read in the old one.
// Its permissions are for the users of its own owner, group and list.

// WithoutGroup returns the permissions of a file for one of another group. Users of the
// new group were others, and those of the old group are others now: both classes get what
// both had.
func WithoutGroup(perm uint32) uint32 {
	both := perm >> 3 & perm & 7
	return perm&^0o77 | both<<3 | both
}

// An access control list as the kernel gives it (acl(5), linux/posix_acl_xattr.h). It has a
// version, and entries of 8 bytes with the kind of a user, its permissions and its number.
const (
	listBegin, listEntry = 4, 8

	listUser, listGroup, listNamedGroup, listMask, listOther = 0x02, 0x04, 0x08, 0x10, 0x20
)

// entries calls do with each entry of a list: its kind, and where its permissions stand.
func listEntries(list []byte, do func(kind uint16, perm []byte)) {
	for at := listBegin; at+listEntry <= len(list); at += listEntry {
		do(binary.LittleEndian.Uint16(list[at:]), list[at+2:at+4])
	}
}

// ListWithoutGroup changes a list for a file of another group, as WithoutGroup does. The new group
// gets nothing, and others no more than the old group had.
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

// OtherOf returns what others may by a list.
func OtherOf(list []byte) (other uint32) {
	listEntries(list, func(kind uint16, perm []byte) {
		if kind == listOther {
			other = uint32(binary.LittleEndian.Uint16(perm)) & 7
		}
	})
	return other
}

// WithoutList returns the permissions for a file that does not get the list which the old
// one has. It is not known which users the list meant, so all get what each of them had.
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

// Within removes the permissions of the group and of others that could not read the old
// file.
func Within(perm, old uint32) uint32 {
	for _, class := range []uint32{0o070, 0o007} {
		if old&class&0o044 == 0 {
			perm &^= class
		}
	}
	return perm
}

// The extended attributes that are a file's access control list, and the one that a
// directory gives to what is made in it: acl(5).
const (
	AccessList  = "system.posix_acl_access"
	DefaultList = "system.posix_acl_default"
)
