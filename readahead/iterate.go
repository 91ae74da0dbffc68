package readahead

import "iter"

// Bytes returns the bytes that are left, to range over. It is the fastest way to look at
// each, because the loop is compiled into one over memory. It ends where the source
// does, also with an error: see [Reader.Err] afterwards. If a loop ends early, it has
// consumed the bytes that it got. Its body must not use the Reader. If the body panics,
// the bytes after it that were in memory are consumed too.
func (r *Reader) Bytes() iter.Seq[byte] {
	return func(yield func(byte) bool) {
		for r.ready() {
			unread := r.view[r.pos:]
			r.pos = len(r.view)
			for i, c := range unread {
				if !yield(c) {
					r.pos -= len(unread) - i - 1
					return
				}
			}
		}
	}
}

// ready reports whether there are bytes that were not consumed.
func (r *Reader) ready() bool {
	return r.pos < len(r.view) || r.more() == nil
}

// Blocks returns what is left, to range over, in slices as large as they are read. An
// error comes last, with no bytes; the end of the source is no error. If a loop ends
// early, it has consumed the blocks that it got.
func (r *Reader) Blocks() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for r.ready() {
			block := r.view[r.pos:]
			r.pos = len(r.view)
			if !yield(block, nil) {
				return
			}
		}
		if err := notEOF(r.err); err != nil {
			yield(nil, err)
		}
	}
}
