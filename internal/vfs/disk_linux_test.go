package vfs

import "github.com/holdfast-go/holdfast/internal/sys"

// The kernel of Linux has all optional calls.
var _ interface {
	FileSystems
	Attributes
	LinkAttributes
	Specials
	Cloner
	Mover
	Holes
	Allocator
	PageCache
} = sys.Disk{}
