package wal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// asideSuffix ends the name of a segment that Options.Repair has set aside.
const asideSuffix = ".damaged"

// A keeping is the part of a damaged log that Options.Repair keeps: the records before the first
// damage, or none. Damage around the records takes none: of a header whose copy is whole, or of a
// file that is too short behind its last record.
type keeping struct {
	segments []*found
	next     uint64 // the index after the last record that is kept
	some     bool   // a record is kept
	ended    bool
	in       string // the segment with the damage, or ""
}

// mendable reports whether only a segment's header is damaged, and known from a copy.
func (s *found) mendable() bool { return s.fault != "" && s.known && !s.missing }

// record is a recordFunc.
func (k *keeping) record(r Record, d *DamageError) bool {
	switch {
	case k.ended:
	case d != nil:
		around := slices.ContainsFunc(k.segments, func(s *found) bool {
			return filepath.Base(d.Path) == s.name && (s.mendable() && d.Offset == 0 || d.Offset == s.has)
		})
		front := !k.some && d.Offset == 0
		if k.ended = !around && !front; k.ended {
			if k.in = filepath.Base(d.Path); !k.some || d.Index < k.next {
				k.next = max(d.Index, 1)
			}
		}
	case k.some && r.Index != k.next:
		k.ended = true
	default:
		k.next, k.some = r.Index+1, true
	}
	return true
}

// repair makes a log of a damaged one's kept part. A new segment begins behind it, as after
// TruncateAfter, and so the rest is void. The segments with damage and behind it are set aside: it
// returns their new paths.
func (l *Log) repair(segments []*found) (aside []string, err error) {
	keep := keeping{segments: segments, next: 1}
	st, err := load(&l.dir, segments, 0, keep.record)
	if err != nil {
		return nil, err
	}
	low := st.First
	for _, s := range segments {
		l.epoch = max(l.epoch, s.epoch, s.seal.epoch)
		if s.known && l.id == [16]byte{} {
			l.id = s.id
		}
	}
	if l.id == [16]byte{} {
		if _, err := rand.Read(l.id[:]); err != nil {
			return nil, err
		}
	}
	if !keep.some {
		low = keep.next
	}
	for _, s := range st.live {
		if keep.some && s.first < keep.next {
			l.segments = append(l.segments, s)
			low = max(low, l.segments[0].first)
		}
	}
	for _, s := range l.segments {
		f := segments[slices.IndexFunc(segments, func(f *found) bool { return f.name == s.name })]
		if f.fault != "" || f.has < int64(f.size) || s.name == keep.in {
			path, err := l.copyAside(s)
			if err != nil {
				return nil, fmt.Errorf("wal: set %s aside: %w", filepath.Join(l.dir.path, s.name), err)
			}
			aside = append(aside, path)
		}
		if err := l.mend(f, keep.next); err != nil {
			return nil, fmt.Errorf("wal: mend %s: %w", filepath.Join(l.dir.path, s.name), err)
		}
	}
	s, err := l.begin(keep.next, min(low, keep.next), int64(l.opts.SegmentSize))
	if err != nil {
		return nil, err
	}
	if err := l.disk.Close(s.fd); err != nil {
		return nil, err
	}
	for _, f := range segments {
		if f.missing || slices.ContainsFunc(l.segments, func(s *segment) bool { return s.name == f.name }) ||
			slices.ContainsFunc(st.void, func(s *segment) bool { return s.name == f.name }) {
			continue
		}
		if err := l.disk.Rename(l.dir.fd, plainName(f.name), plainName(f.name+asideSuffix)); err != nil {
			return nil, fmt.Errorf("wal: set %s aside: %w", filepath.Join(l.dir.path, f.name), err)
		}
		aside = append(aside, filepath.Join(l.dir.path, f.name+asideSuffix))
	}
	l.segments = nil
	return aside, l.dir.sync(l.dir.names.Now())
}

// mend makes the records of a kept segment before an index durable, and its header and size whole.
func (l *Log) mend(s *found, next uint64) error {
	w := walk{dir: &l.dir, state: new(dirState), each: func(Record, *DamageError) bool { return true }}
	if err := w.segment(s, min(next, s.next), false); err != nil {
		return err
	}
	fd, is, err := l.dir.open(s.name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer l.disk.Close(fd)
	if err := l.restore(fd, s.segment, headerSize); err != nil {
		return err
	}
	if s.fault != "" {
		if err := errors.Join(l.writeAt(fd, s.encode(), 0), l.writeAt(fd, s.encode(), copyAt)); err != nil {
			return err
		}
	}
	if is.Size < int64(s.size) {
		if err := l.disk.Truncate(fd, int64(s.size)); err != nil {
			return err
		}
	}
	return l.syncFile(fd)
}

// copyAside copies a segment's file under another name, and returns its path.
func (l *Log) copyAside(s *segment) (path string, err error) {
	from, is, err := l.dir.open(s.name, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer l.disk.Close(from)
	to, _, err := l.dir.open(s.name+asideSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, l.opts.Perm)
	if err != nil {
		return "", err
	}
	defer l.disk.Close(to)
	w := window{disk: l.disk, fd: from, size: is.Size, chunk: recoverChunk}
	for at := int64(0); at < is.Size; {
		b, err := w.bytes(at, 1)
		if err != nil || len(b) == 0 {
			return "", err
		}
		if err := l.writeAt(to, b, at); err != nil {
			return "", err
		}
		at += int64(len(b))
	}
	return filepath.Join(l.dir.path, s.name+asideSuffix), l.syncFile(to)
}
