// Package records lets a File tell a Writer where records end.
package records

// Bytes are accepted bytes that wait for a flush. Only this module has the type, so that no File
// outside is an [Ender] by accident.
type Bytes []byte

// An Ender is a File whose records may consist of several Writes.
type Ender interface {
	// RecordEnd returns the end of the last whole record in p, or 0 if p has none. It is called
	// with the Writer's lock.
	RecordEnd(p Bytes) int
}
