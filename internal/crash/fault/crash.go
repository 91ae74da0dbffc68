package fault

import (
	"bytes"
	"math/rand/v2"
)

// ProcessCrash returns what the file holds if the process dies now: all that
// Write took. Of a Write in flight it holds nothing.
func (f *File) ProcessCrash() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Clone(f.kernel)
}

// Stable returns how many bytes no power cut takes away, counted from the file's start. These are
// the bytes covered by a Sync that returned nil, up to the first byte that a failed one lost.
func (f *File) Stable() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.stable
	for _, s := range f.lost {
		n = min(n, s.from)
	}
	return n
}

// PowerCut returns one thing that the file may hold if the machine dies now. It is all that is on
// the disk, with zeros where a failed sync lost bytes. Of the bytes written since the last sync,
// the file holds nothing, everything, zeros, or an arbitrary choice of sectors. A missing sector is
// zeros, or the file ends there.
func (f *File) PowerCut(r *rand.Rand) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	image := bytes.Clone(f.kernel)
	for _, s := range f.lost {
		clear(image[s.from:s.to])
	}
	switch r.IntN(5) {
	case 0:
		return image[:f.stable]
	case 1:
		return image
	case 2:
		clear(image[f.stable:])
		return image
	default:
		return image[:f.scatterLocked(image, r)]
	}
}

// scatterLocked drops some of the sectors past the stable bytes and returns
// where the file ends.
func (f *File) scatterLocked(image []byte, r *rand.Rand) int64 {
	end := f.stable
	for from := f.stable; from < int64(len(image)); {
		to := min(int64(len(image)), (from/f.sector+1)*f.sector)
		switch r.IntN(3) {
		case 0: // present
			end = to
		case 1: // the length is there, the bytes are not
			clear(image[from:to])
			end = to
		default: // absent: a hole, if the file goes on behind it
			clear(image[from:to])
		}
		from = to
	}
	return end
}
