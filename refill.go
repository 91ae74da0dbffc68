package holdfast

// more puts the next bytes of the source behind those that are not consumed, all
// as one slice. An error says that there are none; what is not consumed stays.
func (r *Reader) more() error {
	if r.err != nil {
		return r.err
	}
	if r.ahead == nil && r.pace.wantsAhead(r.source.offset, r.block) {
		r.holdBlock()
		r.ahead = startAhead(&r.source, r.head, r.block)
	}
	if r.ahead != nil {
		return r.take()
	}
	r.makeRoom()
	end := len(r.view)
	r.pace.reads()
	n, err := r.source.read(r.view[end:min(cap(r.view), end+r.block)])
	r.pace.hasRead()
	return r.got(n, err)
}

// got counts in what stands behind the view now, and what comes after it.
func (r *Reader) got(n int, err error) error {
	r.view = r.view[:len(r.view)+n]
	r.err = err
	if n == 0 {
		return err
	}
	return nil
}

// makeRoom moves the view so that the source can be read into the memory behind
// it: at least half a block.
func (r *Reader) makeRoom() {
	switch room := cap(r.view) - len(r.view); {
	case r.buffered() > 0 && 2*room >= r.block:
	case r.buffered() <= r.head:
		r.holdBlock()
		r.moveBefore(r.mem)
	default:
		r.lengthen()
	}
}

// holdBlock sees to it that the Reader has a block of memory of its own.
func (r *Reader) holdBlock() {
	if r.mem == nil {
		r.mem = make([]byte, r.head+r.block)
	}
}

// take is more where a goroutine reads ahead.
func (r *Reader) take() error {
	b := r.ahead.take()
	data := b.mem[r.head : r.head+b.n]
	switch room := cap(r.view) - len(r.view); {
	case r.buffered() > len(data) && room >= len(data):
		// Less is copied this way, and many short reads don't move a long
		// line again and again.
		copy(r.view[len(r.view):cap(r.view)], data)
		r.ahead.give(b.mem)
	case r.buffered() <= r.head:
		r.moveBefore(b.mem)
		r.ahead.give(r.mem)
		r.mem = b.mem
	default:
		r.lengthen()
		copy(r.view[len(r.view):cap(r.view)], data)
		r.ahead.give(b.mem)
	}
	return r.got(b.n, b.err)
}

// moveBefore copies what is not consumed, and the byte before it for UnreadByte
// if there is room, to where the block in mem begins.
func (r *Reader) moveBefore(mem []byte) {
	unread := r.buffered()
	kept := r.view[r.pos:]
	if r.pos > r.low && unread < r.head {
		kept = r.view[r.pos-1:]
	}
	r.low, r.pos = r.head-len(kept), r.head-unread
	copy(mem[r.low:], kept)
	r.view = mem[:r.head]
}

// lengthen moves what is not consumed to memory of its own, with room for a block
// behind it. That memory at least doubles, so that a line is copied twice at most.
func (r *Reader) lengthen() {
	unread := r.view[r.pos:]
	if cap(r.long)-len(unread) < r.block {
		r.long = make([]byte, 2*len(unread)+r.block)
	}
	n := copy(r.long, unread)
	r.view, r.pos, r.low = r.long[:n], 0, 0
}
