package readahead

import "iter"

// Bytes returns an iterator over the remaining bytes. It is the fastest way to read byte by byte,
// because the compiler turns the loop into one over memory. It ends at the end of the source or at
// an error: call [Reader.Err] afterwards. A loop that ends early has consumed the bytes that it
// got. Its body must not use the Reader. If the body panics, the later bytes in memory are consumed
// too.
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

// ready reports whether memory holds unconsumed bytes.
func (r *Reader) ready() bool {
	return r.pos < len(r.view) || r.more() == nil
}

// Blocks returns an iterator over the remaining bytes in slices of the size of the reads. An error
// comes last, with no bytes; the end of the source is no error. A loop that ends early has consumed
// the blocks that it got.
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
