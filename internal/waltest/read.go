// Package waltest reads a write-ahead log by docs/wal.md, and uses nothing of package wal.
package waltest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"slices"
)

// ErrDamaged is returned for a log that Open must refuse.
var ErrDamaged = errors.New("damaged")

var number, long, table = binary.LittleEndian.Uint32, binary.LittleEndian.Uint64, crc32.MakeTable(crc32.Castagnoli)

type part struct { // a segment; without data only its header is known
	epoch, first, low, before, size uint64
	id, key                         string
	data                            []byte
	seed                            uint32
}

func header(b []byte) *part {
	if len(b) < 96 || string(b[:8]) != "hfastwal" || number(b[8:]) != 2 || number(b[92:]) != crc32.Checksum(b[:92], table) ||
		number(b[12:]) < 8192 || number(b[12:]) > 256<<20 || long(b[40:]) == 0 || long(b[48:]) > long(b[40:]) {
		return nil
	}
	return &part{epoch: long(b[32:]), first: long(b[40:]), low: long(b[48:]), before: long(b[72:]), size: uint64(number(b[12:])), id: string(b[16:32]),
		key: string(b[64:72]), seed: crc32.Update(crc32.Checksum(b[16:32], table), table, b[64:72])}
}

// Read returns the first index and the records of a log, by the names and bytes of its files.
func Read(files map[string][]byte) (first uint64, records [][]byte, err error) {
	var all, live []*part
	for name, data := range files {
		if p := header(data); path.Ext(name) == ".wal" {
			if p == nil || uint64(len(data)) < p.size || path.Base(name) != fmt.Sprintf("%016x.wal", p.epoch) || len(all) > 0 && all[0].id != p.id {
				return 0, nil, ErrDamaged
			}
			p.data = data[:p.size]
			all = append(all, p)
		}
	}
	for _, p := range slices.Clone(all) {
		if next := header(p.data[512:]); next != nil && !slices.ContainsFunc(all, func(o *part) bool { return o.epoch == next.epoch }) {
			all = append(all, next)
		}
	}
	slices.SortFunc(all, func(a, b *part) int { return int(a.epoch) - int(b.epoch) })
	for _, p := range all {
		live = append(live[:slices.IndexFunc(append(live, p), func(o *part) bool { return o.first >= p.first })], p)
	}
	first = 1
	if len(live) > 0 {
		_, first, err = live[len(live)-1].frames(0, 1<<63)
	}
	for len(live) > 1 && live[1].first <= first {
		live = live[1:]
	}
	for i, p := range live {
		limit, some := uint64(1<<63), [][]byte(nil)
		if i == 0 && p.first > first || err != nil {
			return 0, nil, ErrDamaged
		} else if i+1 < len(live) {
			next, seal := live[i+1], header(p.data[min(512, len(p.data)):])
			if limit = next.first; next.before != p.epoch || seal != nil && seal.epoch == next.epoch && seal.key != next.key {
				return 0, nil, ErrDamaged
			}
		}
		some, _, err = p.frames(first, limit)
		records = append(records, some...)
	}
	return first, records, err
}

// frames returns a segment's records from index low on and before limit, and the log's first index.
func (p *part) frames(low, limit uint64) (records [][]byte, first uint64, err error) {
	if p.data == nil {
		return nil, 0, ErrDamaged
	}
	at, next, durable, first := 4096, p.first, uint32(0), p.low
	if note := p.data[1024:1040]; number(note) == crc32.Update(p.seed, table, note[4:]) {
		durable, first = number(note[4:]), max(first, long(note[8:]))
	}
	head, some := p.frame(at)
	for ; next < limit && some != nil && long(head[16:]) == next; head, some = p.frame(at) {
		if number(head[12:]) == 0 {
			first, some = max(first, long(some[0])), nil
		}
		for _, r := range some {
			if next >= low && next < limit {
				records = append(records, r)
			}
			next++
		}
		at += (32 + int(number(head[4:])) + 7) / 8 * 8
	}
	for behind := at + 8; behind < len(p.data); behind += 8 {
		if head, _ := p.frame(behind); head != nil && long(head[16:]) >= next {
			durable = max(durable, number(head[24:]))
		}
	}
	if next < limit && (limit < 1<<63 || int(durable) > at) {
		return nil, 0, ErrDamaged
	}
	return records, first, nil
}

// frame returns a frame's whole header, and if the frame is whole its records, or a mark's body.
func (p *part) frame(at int) (head []byte, records [][]byte) {
	if at+32 > len(p.data) || string(p.data[at+8:at+12]) != p.key[:4] || number(p.data[at+28:]) != crc32.Update(p.seed, table, p.data[at+4:at+28]) {
		return nil, nil
	}
	head, body := p.data[at:at+32], p.data[at+32:]
	body = body[:min(len(body), int(number(head[4:])))]
	data := body[min(len(body), 4*int(number(head[12:]))):]
	for lengths := body[:len(body)-len(data)]; len(lengths) > 0 && int(number(lengths)) <= len(data); lengths = lengths[4:] {
		records, data = append(records, data[:number(lengths)]), data[number(lengths):]
	}
	whole := len(body) == int(number(head[4:])) && number(head) == crc32.Update(number(head[28:]), table, body)
	if number(head[12:]) == 0 && len(data) == 8 && whole {
		return head, [][]byte{data}
	} else if !whole || len(data) > 0 || len(records) != int(number(head[12:])) {
		return head, nil
	}
	return head, records
}
