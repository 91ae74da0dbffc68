package timing

import (
	"bytes"
	"embed"
	"slices"
	"sync"
)

// published are the published figures, seconds as they stand in the repetition's CSV files and
// tables, in the layout [Whole]. The machine was a virtual one of QEMU 7.2 on an M1, under Debian.
// Its clock had milliseconds, and each figure is the average of 20 runs unless it says otherwise.
//
//go:embed published/*.csv
var published embed.FS

// tables are the rows of the published files, read once. A file that can't be read is a
// mistake of ours: it is part of the program, and a test reads them all.
var tables = sync.OnceValue(func() map[string][]Row {
	all := map[string][]Row{}
	for _, name := range []string{"copies", "synced", "sizes", "writes", "book"} {
		text, err := published.ReadFile("published/" + name + ".csv")
		if err != nil {
			panic(err)
		}
		if all[name], err = ReadCSV(bytes.NewReader(text), name+".csv"); err != nil {
			panic(err)
		}
	}
	return all
})

// PublishedCopies are part C: 100 MiB on six file systems, in the order of the
// repetition's text. The caller owns the slice.
func PublishedCopies() []Row { return slices.Clone(tables()["copies"]) }

// PublishedSynced is part B: 1 MiB on ext4 with O_SYNC. Only the line of one byte is a time. The
// others are one run divided by the 20 that were planned, so two bytes took 844.7 s. The caller
// owns the slice.
func PublishedSynced() []Row { return slices.Clone(tables()["synced"]) }

// PublishedSizes are part A: files of 1 to 32 MiB on ext4. The caller owns the slice.
func PublishedSizes() []Row { return slices.Clone(tables()["sizes"]) }

// PublishedWrites are 32 MiB written without reading on five file systems, in the
// order of the published columns. The total is the sum of user and system, as the
// repetition's script makes it. The caller owns the slice.
func PublishedWrites() []Row { return slices.Clone(tables()["writes"]) }

// Book has the tables 13-1 to 13-3 of The Linux Programming Interface: ext2 under Linux 2.6.30 with
// blocks of 4096 bytes. Copies and writes are of 100 million bytes, writes with O_SYNC of 1
// million. Of the CPU only what is here is known: 0 is unknown. The caller owns the slice.
func Book() []Row { return slices.Clone(tables()["book"]) }
