package main

import (
	"encoding/binary"
	"encoding/gob"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"sync"

	hashicorp "github.com/hashicorp/raft"
)

// A command is data of any size. Its entry's extensions have the life of the process that gave it,
// its number in that life, and a checksum of the data.
func command(life, number uint32, data []byte) hashicorp.Log {
	id := binary.BigEndian.AppendUint32(nil, life)
	id = binary.BigEndian.AppendUint32(id, number)
	return hashicorp.Log{Data: data, Extensions: binary.BigEndian.AppendUint32(id, crc32.ChecksumIEEE(data))}
}

// A machine counts how often each command was applied. It is raft's finite-state machine.
type machine struct {
	mu     sync.Mutex
	counts counts
}

// counts are of each life's commands by their numbers, and of those whose data is wrong.
type counts struct {
	Applied map[uint32][]uint8
	Wrong   int
}

func (m *machine) Apply(log *hashicorp.Log) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts.Applied == nil {
		m.counts.Applied = map[uint32][]uint8{}
	}
	if len(log.Extensions) != 12 || crc32.ChecksumIEEE(log.Data) != binary.BigEndian.Uint32(log.Extensions[8:]) {
		m.counts.Wrong++
		return nil
	}
	life, number := binary.BigEndian.Uint32(log.Extensions), int(binary.BigEndian.Uint32(log.Extensions[4:]))
	of := m.counts.Applied[life]
	if number >= len(of) {
		of = append(of, make([]uint8, number+1-len(of))...)
	}
	if of[number] < 255 {
		of[number]++
	}
	m.counts.Applied[life] = of
	return nil
}

func (m *machine) copy() counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := counts{maps.Clone(m.counts.Applied), m.counts.Wrong}
	for life, of := range c.Applied {
		c.Applied[life] = slices.Clone(of)
	}
	return c
}

func (m *machine) Snapshot() (hashicorp.FSMSnapshot, error) { return snapshot(m.copy()), nil }

func (m *machine) Restore(from io.ReadCloser) error {
	defer from.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts = counts{}
	return gob.NewDecoder(from).Decode(&m.counts)
}

type snapshot counts

func (s snapshot) Persist(to hashicorp.SnapshotSink) error {
	if err := gob.NewEncoder(to).Encode(counts(s)); err != nil {
		to.Cancel()
		return err
	}
	return to.Close()
}

func (snapshot) Release() {}
