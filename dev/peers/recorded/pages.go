package recorded

import (
	"fmt"
	"slices"
)

var (
	syncs      = []string{"disk", "60µs", "200µs", "1ms"}
	performing = "docs/performance.md"
)

// tables are the tables of the pages. A claim that no run supports, or that one refutes, fails the test.
func tables() []table {
	return []table{
		{
			page: performing, name: "append", first: "bytes, goroutines",
			rows: slices.Concat(rowsOf([]string{"40B", "200B"}, []int{1, 2, 8, 64, 512}), rowsOf([]string{"40B"}, []int{4096}), rowsOf([]string{"4KiB", "1MiB"}, []int{1, 8})),
			columns: []column{
				timeOf("Writer", "append/size=%s/goroutines=%d", "holdfast"),
				noiseOf("the Writer again", "append/size=%s/goroutines=%d", "holdfast (twin)"),
				timeOf("best bufio", "append/size=%s/goroutines=%d", "bufio *"),
				ratioOf("bufio ÷ Writer", "append/size=%s/goroutines=%d", "bufio *"),
				cpuOf("CPU: Writer", "append/size=%s/goroutines=%d", "holdfast"),
				cpuRatioOf("CPU: bufio ÷ Writer", "append/size=%s/goroutines=%d", "bufio *"),
			},
			claims: []claim{
				{"The best bufio takes 1.3 times as long for 40 bytes by 2 goroutines", "append", []string{"append/size=40B/goroutines=2"}, "bufio *", 1.3, false},
				{"The best bufio takes 1.7 times as long for 40 bytes by 8 goroutines", "append", []string{"append/size=40B/goroutines=8"}, "bufio *", 1.7, false},
				{"The best bufio takes 1.6 times as long for 40 bytes by 64 goroutines", "append", []string{"append/size=40B/goroutines=64"}, "bufio *", 1.6, false},
				{"The best bufio takes 1.3 times as long for 200 bytes by 64 goroutines", "append", []string{"append/size=200B/goroutines=64"}, "bufio *", 1.3, false},
				{"One goroutine alone has at least 0.5 of bufio's speed", "append", []string{"append/size=40B/goroutines=1", "append/size=200B/goroutines=1"}, "bufio *", 0.5, false},
			},
		},
		{
			page: performing, name: "unbuffered", first: "bytes, goroutines",
			rows: rowsOf([]string{"40B", "200B", "4KiB"}, []int{1, 8}),
			columns: []column{
				timeOf("Writer, `buffer=0`", "unbuffered/size=%s/goroutines=%d", "holdfast"),
				noiseOf("the Writer again", "unbuffered/size=%s/goroutines=%d", "holdfast (twin)"),
				ratioOf("os.File ÷ Writer", "unbuffered/size=%s/goroutines=%d", "os.File"),
				cpuRatioOf("CPU: os.File ÷ Writer", "unbuffered/size=%s/goroutines=%d", "os.File"),
			},
			claims: []claim{
				{"Without a buffer a Writer has at least 0.8 of the speed of an os.File", "append", names("unbuffered/size=%s/goroutines=%d", rowsOf([]string{"200B", "4KiB"}, []int{1})), "os.File", 0.8, false},
			},
		},
		{
			page: performing, name: "formatted", first: "formatting, goroutines",
			rows: rowsOf([]string{"200ns", "1µs"}, []int{1, 2, 8, 64}),
			columns: []column{
				timeOf("Writer", "format=%s/goroutines=%d", "holdfast"),
				noiseOf("the Writer again", "format=%s/goroutines=%d", "holdfast (twin)"),
				ratioOf("best bufio ÷ Writer", "format=%s/goroutines=%d", "bufio *"),
				ratioOf("no sink ÷ Writer", "format=%s/goroutines=%d", "limit no sink"),
				cpuRatioOf("CPU: bufio ÷ Writer", "format=%s/goroutines=%d", "bufio *"),
			},
		},
		{
			page: performing, name: "procs", first: "goroutines",
			rows: rowsOfOne([]int{1, 8, 64, 512}),
			columns: []column{
				timeOf("GOMAXPROCS 2", "procs/goroutines=%d", "holdfast"),
				noiseOf("2 again", "procs/goroutines=%d", "holdfast (twin)"),
				ratioOf("8 ÷ 2", "procs/goroutines=%d", "holdfast GOMAXPROCS=8"),
				ratioOf("32 ÷ 2", "procs/goroutines=%d", "holdfast GOMAXPROCS=32"),
			},
		},
		{
			page: performing, name: "durable", first: "sync, goroutines",
			rows: append(rowsOf([]string{"15µs"}, []int{1}), rowsOf(syncs, []int{1, 8, 64, 512, 1024})...),
			columns: []column{
				timeOf("Writer", "sync=%s/size=128B/goroutines=%d", "holdfast"),
				noiseOf("the Writer again", "sync=%s/size=128B/goroutines=%d", "holdfast (twin)"),
				ratioOf("pebble ÷ Writer", "sync=%s/size=128B/goroutines=%d", "pebble"),
				ratioOf("alone ÷ Writer", "sync=%s/size=128B/goroutines=%d", "limit fdatasync"),
				cpuRatioOf("CPU: pebble ÷ Writer", "sync=%s/size=128B/goroutines=%d", "pebble"),
			},
			claims: []claim{
				{"Pebble takes 1.4 times as long with 8 goroutines, whatever the sync", "durable", names("sync=%s/size=128B/goroutines=%d", rowsOf(syncs, []int{8})), "pebble", 1.4, false},
				{"Pebble is not ahead with 64 goroutines", "durable", names("sync=%s/size=128B/goroutines=%d", rowsOf(syncs, []int{64})), "pebble", 1, false},
				{"With 512 goroutines and more a Writer has at least 0.75 of pebble's speed", "durable", names("sync=%s/size=128B/goroutines=%d", rowsOf(syncs, []int{512, 1024})), "pebble", 0.75, false},
				{"One goroutine alone takes what write(2) and fdatasync(2) take, within a tenth", "durable", names("sync=%s/size=128B/goroutines=%d", rowsOf(syncs, []int{1})), "limit fdatasync", 0.9, false},
			},
		},
		{
			page: performing, name: "create", first: "files",
			rows: rowsOfOne([]int{1000}),
			columns: []column{
				timeOf("WriteAll, 2 workers", "create/%d", "holdfast"),
				noiseOf("the same again", "create/%d", "holdfast (twin)"),
				ratioOf("1 worker", "create/%d", "holdfast 1 worker"),
				ratioOf("os.WriteFile", "create/%d", "os.WriteFile"),
				ratioOf("a pool of 2", "create/%d", "pool 2"),
				ratioOf("a pool of 64", "create/%d", "pool 64"),
				cpuRatioOf("CPU: a pool of 2", "create/%d", "pool 2"),
			},
		},
		{
			page: "docs/files.md", name: "batch", first: "file system, files",
			rows: rowsOf([]string{"ext4", "xfs", "btrfs"}, []int{1500, 5000}),
			columns: []column{
				timeOf("`Begin`, nothing durable", "%s/batch/%d", "not durable"),
				noiseOf("the same again", "%s/batch/%d", "not durable (twin)"),
				costOf("`Begin`, durable", "%s/batch/%d", "holdfast batch"),
				costOf("`WriteAll`, durable", "%s/batch/%d", "holdfast WriteAll"),
				ratioOf("renameio, one by one", "%s/batch/%d", "renameio"),
			},
		},
		{
			page: "docs/wal.md", name: "logsync", first: "sync, goroutines",
			rows: rowsOf(syncs, []int{1, 8, 64, 512}),
			columns: []column{
				timeOf("128 B: the log", "logsync/sync=%s/size=128B/goroutines=%d", "holdfast"),
				noiseOf("the same again", "logsync/sync=%s/size=128B/goroutines=%d", "holdfast (twin)"),
				ratioOf("pebble recycled", "logsync/sync=%s/size=128B/goroutines=%d", "pebble-recycled"),
				timeOf("4 KiB: the log", "logsync/sync=%s/size=4KiB/goroutines=%d", "holdfast"),
				ratioOf("over older segments", "logsync/sync=%s/size=4KiB/goroutines=%d", "holdfast-recycled"),
				ratioOf("pebble recycled", "logsync/sync=%s/size=4KiB/goroutines=%d", "pebble-recycled"),
			},
			claims: []claim{
				{"Pebble takes 1.3 times as long for 128 bytes by 8 goroutines, whatever the sync", "log", names("logsync/sync=%s/size=128B/goroutines=%d", rowsOf(syncs, []int{8})), "pebble-recycled", 1.3, false},
				{"For 128 bytes by one goroutine the log has at least 0.75 of pebble's speed", "log", names("logsync/sync=%s/size=128B/goroutines=%d", rowsOf(syncs, []int{1})), "pebble-recycled", 0.75, false},
			},
		},
		{
			page: "docs/wal.md", name: "logread", first: "order, bytes",
			rows: rowsOf([]string{"order", "random"}, []int{128, 4096}),
			columns: []column{
				timeOf("the log", "logread/%s/size=%d", "holdfast"),
				noiseOf("the same again", "logread/%s/size=%d", "holdfast (twin)"),
				ratioOf("raft-wal", "logread/%s/size=%d", "raft-wal"),
				ratioOf("tidwall/wal", "logread/%s/size=%d", "tidwall-wal"),
			},
			claims: []claim{
				{"Raft-wal takes 8 times as long for 128 bytes in order", "log", []string{"logread/order/size=128"}, "raft-wal", 8, false},
				{"Raft-wal takes 1.3 times as long at random, and for 4 KiB", "log", []string{"logread/random/size=128", "logread/order/size=4096", "logread/random/size=4096"}, "raft-wal", 1.3, false},
			},
		},
		{
			page: "docs/logs.md", name: "rotate", first: "goroutines",
			rows: rowsOfOne([]int{1, 8, 64}),
			columns: []column{
				timeOf("`rotate`, `Unbuffered()`", "rotate/goroutines=%d", "holdfast"),
				noiseOf("the same again", "rotate/goroutines=%d", "holdfast (twin)"),
				timeOf("`rotate`, `Periodic(time.Second)`", "rotate/goroutines=%d", "holdfast-1s"),
				ratioOf("lumberjack ÷ `Unbuffered()`", "rotate/goroutines=%d", "lumberjack"),
				ratioOf("timberjack ÷ `Unbuffered()`", "rotate/goroutines=%d", "timberjack"),
			},
		},
		{
			page: "docs/logs.md", name: "slog", first: "goroutines",
			rows: rowsOfOne([]int{1, 8, 64}),
			columns: []column{
				timeOf("`rotate`, `Unbuffered()`", "slog/goroutines=%d", "holdfast"),
				noiseOf("the same again", "slog/goroutines=%d", "holdfast (twin)"),
				timeOf("`rotate`, `Periodic(time.Second)`", "slog/goroutines=%d", "holdfast-1s"),
				ratioOf("lumberjack ÷ `Unbuffered()`", "slog/goroutines=%d", "lumberjack"),
				ratioOf("timberjack ÷ `Unbuffered()`", "slog/goroutines=%d", "timberjack"),
				timeOf("no sink", "slog/goroutines=%d", "limit no sink"),
			},
		},
		{
			page: "docs/write.md", name: "lines", first: "lines to",
			rows: []row{{"one file", []any{"one"}}, {"a file for each value", []any{"column"}}},
			columns: []column{
				rateOf("`holdfast write`, MB/s", "lines/%s", "holdfast", "MB/s"),
				noiseOf("the same again", "lines/%s", "holdfast (twin)"),
				rateOf("under its default policy, MB/s", "lines/%s", "holdfast-1s", "MB/s"),
				ratioOf("awk ÷ ours", "lines/%s", "awk"),
				ratioOf("tee ÷ ours", "lines/%s", "tee"),
				ratioOf("cat ÷ ours", "lines/%s", "cat"),
				cpuRatioOf("CPU: awk ÷ ours", "lines/%s", "awk"),
			},
		},
	}
}

// rowsOfOne makes a row of each value.
func rowsOfOne[A any](values []A) (rows []row) {
	for _, v := range values {
		rows = append(rows, row{fmt.Sprint(v), []any{v}})
	}
	return rows
}

// names puts the rows' values into the name of a group.
func names(group string, rows []row) (all []string) {
	for _, r := range rows {
		all = append(all, fmt.Sprintf(group, r.of...))
	}
	return all
}
