package vfs

// The kinds of files in st_mode.
const (
	KindMask    = 0o170000
	KindRegular = 0o100000
	KindLink    = 0o120000
	PermMask    = 0o7777
)
