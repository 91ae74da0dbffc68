package powercut

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/crash"
)

// A treeServer serves files and directories in memory. It knows no links by name, no devices and no
// attributes beside mode and times. It keeps no bytes behind mostSize of a file.
//
// Each write(2) of up to 1 MiB is one entry, before it returns: there is no write-back cache. A
// program's writes through mapped memory come when the kernel sends them, at the latest with
// msync(2). The kernel sends no syncfs(2) and no sync(2) to such a server.
type treeServer struct {
	server
	nodes map[uint64]*node
	last  uint64            // the number that was given last
	lists map[uint64][]byte // of open directories, by their handles
}

// mostSize bounds a file, since its bytes are in memory.
const mostSize = 64 << 20

// A node is a file or a directory.
type node struct {
	number  uint64
	mode    uint32
	links   uint32
	lookups uint64 // how often the kernel has been given it
	data    []byte
	names   map[string]uint64 // of a directory
	times   [3]int64          // of access, of modification and of change
}

// serve answers the kernel until the tree is unmounted or the connection aborted.
func (t *treeServer) serve() error {
	t.nodes, t.lists, t.last = map[uint64]*node{}, map[uint64][]byte{}, crash.Root
	t.nodes[crash.Root] = newNode(crash.Root, unix.S_IFDIR|0o755)
	t.nodes[crash.Root].links = 1
	return t.server.serve(t.answer)
}

func newNode(number uint64, mode uint32) *node {
	now := time.Now().UnixNano()
	n := &node{number: number, mode: mode, times: [3]int64{now, now, now}}
	if n.isDir() {
		n.names = map[string]uint64{}
	}
	return n
}

func (n *node) isDir() bool { return n.mode&unix.S_IFMT == unix.S_IFDIR }

func (n *node) changed() { n.times[1] = time.Now().UnixNano(); n.times[2] = n.times[1] }

// answer appends the answer to a request. A change that the log can't keep is an error of the server.
func (t *treeServer) answer(q request) (unix.Errno, error) {
	switch q.op {
	case opInit:
		t.init(q.in)
		return 0, nil
	case opStatfs:
		t.statfs(4096, 1<<20, 1<<20)
		return 0, nil
	case opForget:
		t.forget(q.node, le64(q.in))
		return 0, nil
	case opBatchForget:
		for in := q.in[8:]; len(in) >= 16; in = in[16:] {
			t.forget(le64(in), le64(in[8:]))
		}
		return 0, nil
	case opRelease, opFlush, opDestroy, opInterrupt:
		return 0, nil
	}
	n := t.nodes[q.node]
	if n == nil {
		return unix.ESTALE, nil
	}
	if n.isDir() {
		return t.answerDir(q, n)
	}
	return t.answerFile(q, n)
}

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// cString returns the name at the beginning of a request's rest, and the bytes behind it.
func cString(b []byte) (string, []byte) {
	name, rest, _ := bytes.Cut(b, []byte{0})
	return string(name), rest
}

// answerFile answers the kernel's requests about files.
func (t *treeServer) answerFile(q request, n *node) (unix.Errno, error) {
	switch q.op {
	case opGetattr:
		t.attr(n)
	case opSetattr:
		return t.setattr(n, q.in)
	case opOpen:
		const keepCache = 1 << 1 // FOPEN_KEEP_CACHE: only this kernel changes the file
		t.put64(0)
		t.put32(openNoFlush|keepCache, 0)
	case opRead:
		at, size := le64(q.in[8:]), uint64(le32(q.in[16:]))
		if at < uint64(len(n.data)) {
			t.out = append(t.out, n.data[at:min(at+size, uint64(len(n.data)))]...)
		}
	case opWrite:
		at, data := le64(q.in[8:]), q.in[40:][:le32(q.in[16:])]
		if at+uint64(len(data)) > mostSize {
			return unix.EFBIG, nil
		}
		n.resize(max(len(n.data), int(at)+len(data)))
		copy(n.data[at:], data)
		n.changed()
		t.put32(uint32(len(data)), 0)
		return 0, t.log(crash.Entry{Op: crash.Write, File: n.number, Offset: int64(at), Data: data})
	case opFallocate:
		const keepSize = 1
		end := le64(q.in[8:]) + le64(q.in[16:])
		switch mode := le32(q.in[24:]); {
		case mode&^keepSize != 0:
			return unix.EOPNOTSUPP, nil
		case end > mostSize:
			return unix.EFBIG, nil
		case mode == 0 && end > uint64(len(n.data)):
			return 0, t.truncate(n, end)
		}
	case opFsync:
		return 0, t.log(crash.Entry{Op: crash.Flush, File: n.number})
	default: // POLL too, so that the kernel asks for it no more
		return unix.ENOSYS, nil
	}
	return 0, nil
}

func (n *node) resize(size int) {
	if more := size - len(n.data); more > 0 {
		n.data = append(n.data, make([]byte, more)...)
	}
	n.data = n.data[:size]
}

func (t *treeServer) truncate(n *node, size uint64) error {
	n.resize(int(size))
	n.changed()
	return t.log(crash.Entry{Op: crash.Resize, File: n.number, Offset: int64(size)})
}

// attr appends attributes, which the kernel may keep: nobody else changes them.
func (t *treeServer) attr(n *node) {
	t.put64(forEver, 0)
	t.stat(n)
}

// stat appends a fuse_attr.
func (t *treeServer) stat(n *node) {
	size := uint64(len(n.data))
	t.put64(n.number, size, (size+511)/512)
	for _, at := range n.times {
		t.put64(uint64(at / 1e9))
	}
	for _, at := range n.times {
		t.put32(uint32(at % 1e9))
	}
	t.put32(n.mode, n.links, uint32(os.Geteuid()), uint32(os.Getegid()), 0, 4096, 0)
}

// setattr sets what may be set. A power cut's loss of modes and times is not in the log.
func (t *treeServer) setattr(n *node, in []byte) (unix.Errno, error) {
	const setMode, setUID, setGID, setSize, setAccess, setModified, accessNow, modifiedNow = 1, 2, 4, 8, 16, 32, 128, 256
	valid := le32(in)
	if valid&setUID != 0 && le32(in[76:]) != uint32(os.Geteuid()) || valid&setGID != 0 && le32(in[80:]) != uint32(os.Getegid()) {
		return unix.EPERM, nil
	}
	if valid&setSize != 0 {
		size := le64(in[16:])
		if size > mostSize {
			return unix.EFBIG, nil
		}
		if err := t.truncate(n, size); err != nil {
			return 0, err
		}
	}
	now := time.Now().UnixNano()
	if n.times[2] = now; valid&setMode != 0 {
		n.mode = n.mode&unix.S_IFMT | le32(in[68:])&^unix.S_IFMT
	}
	for i, x := range []struct{ set, now uint32 }{{setAccess, accessNow}, {setModified, modifiedNow}} {
		if valid&x.set != 0 {
			n.times[i] = int64(le64(in[32+8*i:]))*1e9 + int64(le32(in[56+4*i:]))
		}
		if valid&x.now != 0 {
			n.times[i] = now
		}
	}
	t.attr(n)
	return 0, nil
}

// entry appends a fuse_entry_out. The kernel keeps the name until it is changed, by the kernel.
func (t *treeServer) entryOut(n *node) {
	n.lookups++
	t.put64(n.number, 0, forEver, forEver, 0)
	t.stat(n)
}

func (t *treeServer) forget(number, lookups uint64) {
	if n := t.nodes[number]; n != nil {
		n.lookups -= min(lookups, n.lookups)
		t.drop(n)
	}
}

// drop forgets a node that no name and no descriptor leads to.
func (t *treeServer) drop(n *node) {
	if n.lookups == 0 && n.links == 0 {
		delete(t.nodes, n.number)
	}
}

// make makes a node without a name.
func (t *treeServer) make(mode uint32) *node {
	t.last++
	number := t.last
	if mode&unix.S_IFMT == unix.S_IFDIR {
		number |= crash.DirBit
	}
	n := newNode(number, mode)
	t.nodes[number] = n
	return n
}

// answerDir answers the kernel's requests about directories.
func (t *treeServer) answerDir(q request, dir *node) (unix.Errno, error) {
	switch q.op {
	case opGetattr:
		t.attr(dir)
	case opSetattr:
		return t.setattr(dir, q.in)
	case opLookup:
		text, _ := cString(q.in)
		n := t.nodes[dir.names[text]]
		if n == nil {
			return unix.ENOENT, nil
		}
		t.entryOut(n)
	case opOpendir:
		t.last++
		t.put64(t.last)
		t.put32(0, 0)
	case opReaddir:
		t.readdir(dir, le64(q.in), le64(q.in[8:]), int(le32(q.in[16:])))
	case opReleasedir:
		delete(t.lists, le64(q.in))
	case opFsyncdir:
		return 0, t.log(crash.Entry{Op: crash.Flush, File: dir.number})
	case opMknod:
		return t.create(dir, q.in[16:], le32(q.in))
	case opMkdir:
		return t.create(dir, q.in[8:], le32(q.in)|unix.S_IFDIR)
	case opCreate:
		errno, err := t.create(dir, q.in[16:], le32(q.in[4:])|unix.S_IFREG)
		t.put64(0)
		t.put32(openNoFlush, 0)
		return errno, err
	case opTmpfile:
		t.entryOut(t.make(le32(q.in[4:]) | unix.S_IFREG))
		t.put64(0)
		t.put32(openNoFlush, 0)
	case opLink:
		n := t.nodes[le64(q.in)]
		text, _ := cString(q.in[8:])
		if n == nil || n.isDir() {
			return unix.EPERM, nil
		}
		if errno, err := t.edit(crash.Edit{Dir: dir.number, Name: text, File: n.number}); errno != 0 || err != nil {
			return errno, err
		}
		t.entryOut(n)
	case opUnlink, opRmdir:
		text, _ := cString(q.in)
		n := t.nodes[dir.names[text]]
		switch {
		case n == nil:
			return unix.ENOENT, nil
		case len(n.names) > 0:
			return unix.ENOTEMPTY, nil
		}
		return t.edit(crash.Edit{Dir: dir.number, Name: text, File: 0})
	case opRename:
		return t.rename(dir, t.nodes[le64(q.in)], 0, q.in[8:])
	case opRename2:
		return t.rename(dir, t.nodes[le64(q.in)], le32(q.in[8:]), q.in[16:])
	default:
		return unix.ENOSYS, nil
	}
	return 0, nil
}

// create makes a file or a directory with a name.
func (t *treeServer) create(dir *node, rest []byte, mode uint32) (unix.Errno, error) {
	text, _ := cString(rest)
	if kind := mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return unix.EPERM, nil
	}
	if dir.names[text] != 0 {
		return unix.EEXIST, nil
	}
	n := t.make(mode)
	if errno, err := t.edit(crash.Edit{Dir: dir.number, Name: text, File: n.number}); errno != 0 || err != nil {
		delete(t.nodes, n.number)
		return errno, err
	}
	t.entryOut(n)
	return 0, nil
}

func (t *treeServer) rename(from, to *node, flags uint32, names []byte) (unix.Errno, error) {
	oldName, rest := cString(names)
	newName, _ := cString(rest)
	if to == nil || from.names[oldName] == 0 {
		return unix.ENOENT, nil
	}
	n, there := t.nodes[from.names[oldName]], t.nodes[to.names[newName]]
	switch {
	case flags == unix.RENAME_EXCHANGE && there != nil:
		return t.edit(crash.Edit{Dir: from.number, Name: oldName, File: there.number}, crash.Edit{Dir: to.number, Name: newName, File: n.number})
	case flags == unix.RENAME_EXCHANGE:
		return unix.ENOENT, nil
	case flags&^unix.RENAME_NOREPLACE != 0:
		return unix.EINVAL, nil
	case there != nil && flags != 0:
		return unix.EEXIST, nil
	case there != nil && len(there.names) > 0:
		return unix.ENOTEMPTY, nil
	}
	return t.edit(crash.Edit{Dir: from.number, Name: oldName, File: 0}, crash.Edit{Dir: to.number, Name: newName, File: n.number})
}

// edit changes names, all together.
func (t *treeServer) edit(edits ...crash.Edit) (unix.Errno, error) {
	for _, x := range edits {
		switch dir := t.nodes[x.Dir]; {
		case len(x.Name) > unix.NAME_MAX:
			return unix.ENAMETOOLONG, nil
		case dir.links == 0: // it was removed
			return unix.ENOENT, nil
		}
	}
	var before []*node
	for _, x := range edits {
		dir := t.nodes[x.Dir]
		if old := t.nodes[dir.names[x.Name]]; old != nil {
			old.links--
			before = append(before, old)
		}
		if delete(dir.names, x.Name); x.File != 0 {
			dir.names[x.Name] = x.File
			n := t.nodes[x.File]
			n.links++
			n.times[2] = time.Now().UnixNano()
		}
		dir.changed()
	}
	for _, n := range before {
		t.drop(n)
	}
	return 0, t.log(crash.Entry{Op: crash.Name, Edits: edits})
}

// readdir appends what fits of a directory's list, which is made when it is read from its beginning.
func (t *treeServer) readdir(dir *node, handle, at uint64, size int) {
	if at == 0 {
		var list []byte
		add := func(number uint64, name string) {
			kind := uint32(unix.DT_REG)
			if number == crash.Root || number&crash.DirBit != 0 {
				kind = unix.DT_DIR
			}
			next := len(list) + 24 + (len(name)+7)&^7
			list = binary.LittleEndian.AppendUint64(list, number)
			list = binary.LittleEndian.AppendUint64(list, uint64(next))
			list = binary.LittleEndian.AppendUint32(list, uint32(len(name)))
			list = binary.LittleEndian.AppendUint32(list, kind)
			list = append(list, name...)
			list = append(list, make([]byte, next-len(list))...)
		}
		add(dir.number, ".")
		add(crash.Root, "..")
		for _, name := range slices.Sorted(maps.Keys(dir.names)) {
			add(dir.names[name], name)
		}
		t.lists[handle] = list
	}
	list := t.lists[handle]
	for end := int(min(at, uint64(len(list)))); end < len(list); {
		next := int(le64(list[end+8:]))
		if next-int(at) > size {
			break
		}
		t.out = append(t.out, list[end:next]...)
		end = next
	}
}
