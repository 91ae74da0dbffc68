package fault

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// An Image is the disk after a crash, by absolute paths. A file with two names has the same bytes under both.
type Image struct {
	Files map[string][]byte
	Dirs  map[string]bool   // the root is "/"
	Links map[string]string // the targets of symbolic links
}

// File returns a file's bytes. Its path may be relative.
func (m *Image) File(name string) (data []byte, ok bool) {
	data, ok = m.Files[absolute("/", name)]
	return data, ok
}

// ProcessCrash returns what is there if the process dies now: all that its calls
// did. Of calls in flight it holds nothing.
func (d *Disk) ProcessCrash() *Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.imageLocked(
		func(dir *inode) map[string]*inode { return dir.names },
		func(f *inode) []byte { return bytes.Clone(f.bytes) })
}

// PowerCut returns one thing that may be there if the machine dies now. By these rules:
//
// A file's bytes are there as a Sync or Datasync of the file, or a SyncAll of its file system,
// found them that returned nil. Of later writes there may be nothing, all, or the size and zeros.
// There may also be an arbitrary choice of sectors, up to some moment. A missing sector is zeros,
// or the file ends there. Bytes that a failed sync lost are zeros, or what they were to replace.
//
// A directory's names are there as a Sync of the directory, or a SyncAll, found them that returned
// nil. To sync a file is not enough. To sync what is in a new directory is not enough for its name.
// Of the calls since, each is there or not, by an arbitrary choice, with those before it that were
// about the same file. A Rename is there as a whole or not at all. A name may be there and the
// file's bytes not. Bytes of a failed sync may be there until the next sync that returns nil, and
// never are from then on.
func (d *Disk) PowerCut(r *rand.Rand) *Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := map[*inode]map[string]*inode{} // the names of the directories that an op changes
	for _, v := range d.devices {
		for _, op := range survivors(v.log, r) {
			op.onto(func(dir *inode) map[string]*inode {
				if changed[dir] == nil {
					changed[dir] = maps.Clone(dir.onDisk)
				}
				return changed[dir]
			})
		}
	}
	namesOf := func(dir *inode) map[string]*inode {
		if names := changed[dir]; names != nil {
			return names
		}
		return dir.onDisk
	}
	return d.imageLocked(namesOf, func(f *inode) []byte { return f.afterPowerCut(d.sector, r) })
}

// survivors returns which ops a power cut leaves: none, all, the first of them, or
// some with those before them that they build on.
func survivors(log []*nameOp, r *rand.Rand) []*nameOp {
	switch r.IntN(5) {
	case 0:
		return nil
	case 1:
		return log
	case 2:
		return log[:r.IntN(len(log)+1)]
	}
	there := make([]bool, len(log))
	with := map[*inode]bool{}
	for i := len(log) - 1; i >= 0; i-- {
		there[i] = r.IntN(2) == 0
		for _, e := range log[i].edits {
			there[i] = there[i] || e.file != nil && with[e.file]
		}
		for _, e := range log[i].edits {
			with[e.file] = with[e.file] || there[i]
		}
	}
	var some []*nameOp
	for i, op := range log {
		if there[i] {
			some = append(some, op)
		}
	}
	return some
}

// imageLocked walks through these names, always in the same order. Of a directory that is
// inside itself, which failed syncs of moves may leave, it shows the outermost.
func (d *Disk) imageLocked(names func(dir *inode) map[string]*inode, data func(f *inode) []byte) *Image {
	m := &Image{Files: make(map[string][]byte, d.mostFiles), Dirs: map[string]bool{}, Links: map[string]string{}}
	seen := make(map[*inode][]byte, d.mostFiles)
	var around []*inode
	var walk func(p string, f *inode)
	walk = func(p string, f *inode) {
		switch {
		case f.is(kindLink):
			m.Links[p] = f.target
		case f.is(kindFile):
			if _, again := seen[f]; !again {
				seen[f] = data(f)
			}
			m.Files[p] = seen[f]
		case !slices.Contains(around, f):
			around = append(around, f)
			m.Dirs[p] = true
			inside, below := names(f), strings.TrimSuffix(p, "/")+"/"
			for _, name := range sortedNames(inside) {
				walk(below+name, inside[name])
			}
			around = around[:len(around)-1]
		}
	}
	walk("/", d.root)
	d.mostFiles = max(d.mostFiles, len(m.Files))
	return m
}

// afterPowerCut returns one thing that the file may hold.
func (f *inode) afterPowerCut(sector int64, r *rand.Rand) []byte {
	image := append([]byte{}, f.stable...)
	switch r.IntN(5) {
	case 0:
		return image
	case 1:
		for _, c := range f.changes {
			image = c.whole(image)
		}
		return image
	case 2:
		for _, c := range f.changes {
			c.lost = true
			image = c.whole(image)
		}
		return image
	}
	for _, c := range merged(f.changes[:r.IntN(len(f.changes)+1)]) {
		image = c.scattered(image, sector, r)
	}
	return image
}

// merged makes one change of writes that follow upon each other, so that what
// shares a sector shares its fate.
func merged(changes []change) (all []change) {
	for _, c := range changes {
		if n := len(all); n > 0 {
			last := &all[n-1]
			if !c.resize && !last.resize && c.lost == last.lost && c.at == last.at+int64(len(last.data)) {
				last.data = append(last.data, c.data...)
				continue
			}
		}
		c.data = slices.Clip(c.data) // which has to be copied to grow
		all = append(all, c)
	}
	return all
}

// scattered applies some of the sectors of a write to a file's bytes.
func (c change) scattered(image []byte, sector int64, r *rand.Rand) []byte {
	if c.resize {
		return c.whole(image)
	}
	end := c.at + int64(len(c.data))
	for from := c.at; from < end; {
		to := min(end, (from/sector+1)*sector)
		part := change{at: from, data: c.data[from-c.at : to-c.at], lost: c.lost}
		switch r.IntN(3) {
		case 0: // present
			image = part.whole(image)
		case 1: // the length is there, the bytes are not
			part.lost = true
			image = part.whole(image)
		default: // absent: a hole, if the file goes on behind it
		}
		from = to
	}
	return image
}
