package mutants

// The core: Writer, Lane, group commit, the file under them. The patterns name the
// tests that know the code; without one all tests of the package are run at once.
const (
	commitTests = "FailedSync|Group|WaitDurable|FaultMatrix|SyncsMade|SyncByTime|InACommit|EachWrite|LoneWriter"
	flushTests  = "Flush|Record|Memory|Fault|Time|Tick|Due|Background|Bypass|Short|Close"
	laneTests   = "Lane"
)

var loanRemoved = "the lock is lent no more, and its code is gone"

var writerMutants = []mutant{
	{
		number: "01", what: "a sync acknowledges what was flushed while it ran",
		file: "commit.go", tests: commitTests,
		old: "w.durable, w.nameless = covers, false",
		new: "w.durable, w.nameless = max(covers, w.flushed), false",
	},
	{
		number: "02", what: "a failed sync of the Writer is made again",
		file: "target.go", tests: commitTests,
		old: "\tif err := t.syncData(); err != nil {\n\t\tt.entry.lose()\n\t\treturn 1, err",
		new: "\terr = t.syncData()\n\tif err != nil {\n\t\terr = t.syncData()\n\t}\n\tif err != nil {\n\t\tt.entry.lose()\n\t\treturn 1, err",
	},
	{
		number: "03b", what: "Create never syncs the directory, and counts the call",
		file: "target.go", tests: "Name|Create|Directory",
		old: "\t\tif err := t.entry.sync(); err != nil {\n\t\t\treturn calls, err\n\t\t}",
		new: "\t\tt.entry.pending = false",
	},
	{
		number: "05", what: "a short write without an error counts as a whole one",
		file: "target.go", tests: flushTests,
		old: "\t\tif err == nil && k > 0 {\n",
		new: "\t\tif err == nil && k > 0 {\n\t\t\tn = len(p)\n",
	},
	{
		number: "06", what: "what a failing flush took before its error is written again",
		file: "flush.go", tests: flushTests,
		old: "\tw.flushed += int64(n)\n",
		new: "\tif err == nil {\n\t\tw.flushed += int64(n)\n\t}\n",
	},
	{
		number: "06b", what: "the same for a write that bypasses the memory",
		file: "flush.go", tests: flushTests,
		old: "\tw.skipLocked(n)\n",
		new: "\tif err == nil {\n\t\tw.skipLocked(n)\n\t}\n",
	},
	{
		number: "07", what: "writers that a bypass held up do not wake it when they are through",
		file: "flush.go", tests: "TestBypassGoesOn|Record",
		old: "\tif w.heldUp == 0 {\n\t\tw.idle.Broadcast()\n\t}\n",
		new: "",
	},
	{
		number: "07b", what: "a goroutine woken to lead that has no need to does not wake the next",
		file: "commit.go", tests: commitTests,
		old: "\t\tif !c.leading {\n\t\t\tc.covered[c.batch&1].Signal()\n\t\t}\n",
		new: "",
	},
	{
		number: "07c", what: "a failed flush wakes nobody",
		file: "flush.go", tests: flushTests,
		old: "\tw.idle.Broadcast()\n\tif err != nil {\n\t\treturn w.writeErrorLocked(err, again && n == 0)",
		new: "\tif err == nil {\n\t\tw.idle.Broadcast()\n\t}\n\tif err != nil {\n\t\treturn w.writeErrorLocked(err, again && n == 0)",
	},
	{
		number: "08", what: "a waiter trusts that the batch it joined has covered it",
		file: "commit.go", tests: commitTests,
		old: "if c.done > mine && w.durable < end && c.outcome[mine&1] != nil {",
		new: "if c.done > mine {",
	},
	{
		number: "08b", what: "the end of a batch releases the next one too",
		file: "commit.go", tests: commitTests,
		old:  "if c.done > mine && w.durable < end && c.outcome[mine&1] != nil {",
		new:  "if c.done >= mine && c.done > 0 {",
		also: []edit{{"commit.go", "\t\tc.covered[mine&1].Broadcast()\n", "\t\tc.wakeAll()\n"}},
	},
	{
		number: "09", what: "a failed sync moves Durable",
		file: "commit.go", tests: commitTests,
		old: "\tif err != nil {\n\t\tw.final = &SyncError",
		new: "\tif err != nil {\n\t\tw.durable = covers\n\t\tw.final = &SyncError",
	},
	{
		number: "10", what: "Close drops the tail of a lane whose owner is at work",
		file: "lane.go", tests: laneTests,
		old: "\tw.trouble = trouble\n\tfor _, l := range w.lanes {\n\t\tl.sure = l.n.Load()\n\t}\n",
		new: "\tw.trouble = trouble\n",
	},
	{
		number: "11", what: "the flusher takes full blocks before what is due",
		file: "flush.go",
		old:  "\t\tif w.flusher.due {\n\t\t\tw.flusher.due = false",
		new:  "\t\tif full := w.fullLocked(); full > w.flushed {\n\t\t\terr = w.flushStepLocked(full)\n\t\t} else if w.flusher.due {\n\t\t\tw.flusher.due = false",

		equivalent: "memory is flushed in order: a full block is older than what is due behind it, and goes first either way",
	},
	{
		number: "11b", what: "the end of a flush stops the clock of bytes that came meanwhile",
		file: "flush.go", tests: flushTests,
		old: "\tif w.flushed == w.writtenLocked() && len(w.lanes) == 0 {\n\t\tw.flushTimer.Disarm()",
		new: "\tif len(w.lanes) == 0 {\n\t\tw.flushTimer.Disarm()",
	},
	{
		number: "11c", what: "bytes that come during a flush by time do not start the clock",
		file: "flush.go", tests: flushTests + "|" + laneTests,
		old: "\t\t\tw.flushTimer.Disarm()\n\t\t\tw.openLocked()\n",
		new: "\t\t\tw.flushTimer.Disarm()\n",
	},
	{
		number: "11d", what: "a lane's first record does not start the clock",
		file: "lane.go", tests: laneTests,
		old: "\t\tl.w.armLocked()\n",
		new: "",
	},
	{number: "18", what: "the owner of a loan does not look again whether it stands", file: "bias.go", removed: loanRemoved},
	{number: "19", what: "a loan is taken back without the fence", file: "bias.go", removed: loanRemoved},
	{number: "20", what: "the owner of a loan does not look whether somebody is inside", file: "bias.go", removed: loanRemoved},
	{number: "20b", what: "the revoker of a loan does not wait for the owner inside", file: "bias.go", removed: loanRemoved},
	{number: "20c", what: "Close keeps a paused loan", file: "bias.go", removed: loanRemoved},
	{
		number: "21", what: "the lanes' limit ends without the fence",
		file: "lane.go", tests: "EndOfTheLimitAsksForTheFence|OwnerAndWhoEndsTheLimit",
		old: "\t\tif limit == 0 {\n\t\t\tw.fenceLocked()\n\t\t}\n",
		new: "",
	},
	{
		number: "21b", what: "a lane's owner looks at the limit before it publishes",
		file: "lane.go", tests: laneTests,
		old: "\t\tl.publish(int32(at + len(p)))\n\t\tif l.limit.Load() > 0 || l.settle(at) {",
		new: "\t\topen := l.limit.Load() > 0\n\t\tl.publish(int32(at + len(p)))\n\t\tif open || l.settle(at) {",
	},
	{
		number: "22", what: "the Writer does not notice that its file has no name any more",
		file: "target.go", tests: "Unlinked|Name",
		old: "\t\tif links == 0 {",
		new: "\t\tif links == 0 && err != nil {",
	},
	{
		number: "23", what: "Close after a failed flush does not sync what is in the kernel",
		file: "writer.go", tests: "Close|Full",
		old: "\tif w.final != nil || w.durable == w.flushed && !w.nameless {",
		new: "\tif w.final != nil || w.flushed < w.writtenLocked() || w.durable == w.flushed && !w.nameless {",
	},
	{
		number: "25", what: "a group's sync covers the least that anybody needs",
		file: "commit.go", tests: commitTests,
		old: "\tdefault:\n\t\tc.needed = max(c.needed, end)",
		new: "\tdefault:\n\t\tc.needed = min(c.needed, end)",
	},
	{
		number: "30", what: "a background failure is not kept while the flush is stuck",
		file: "writer.go", tests: "Failure|Background|Failed",
		old: "if failed, ok := err.(*WriteError); ok && !failed.again && w.unreported == nil {",
		new: "if failed, ok := err.(*WriteError); ok && !failed.again && w.unreported == nil && !w.stuck {",
	},
	{
		number: "31", what: "memory that grows copies what has wrapped one byte late",
		file: "ring.go", tests: "Memory|Grow|Record",
		old: "\tcopy(memory, held[copy(memory[at:], held):])",
		new: "\tcopy(memory, held[min(len(held), copy(memory[at:], held)+1):])",
	},
	{
		number: "32", what: "a bypass does not merge the lanes first",
		file: "flush.go", tests: laneTests + "|Bypass",
		old: "\tif err := w.mergeLanesLocked(); err != nil {\n\t\treturn err\n\t}\n",
		new: "",
	},
	{
		number: "35", what: "of a long record that spills over a block the end is lost",
		file: "ring.go", tests: "Memory|Record|Spill",
		old: "\tcopy(w.buf[to:], w.buf[at:w.pos])\n",
		new: "\tcopy(w.buf[to:], w.buf[at:min(w.pos, at+2500)])\n",
	},
	{
		number: "36", what: "Close does not report what failed in the background",
		file: "writer.go", tests: "Failure|Background|Close",
		old: "distinct.Join(w.unreported, flushErr, syncErr, w.final, closeErr)",
		new: "distinct.Join(flushErr, syncErr, w.final, closeErr)",
	},

	// Beside those: what a call promises, and the clocks.
	{
		number: "101", what: "Flush leaves out what lanes hold",
		file: "writer.go", tests: laneTests,
		old: "\treturn w.flushAllLocked()\n",
		new: "\treturn w.flushToLocked(w.writtenLocked())\n",
	},
	{
		number: "102", what: "a late sync by time first flushes what came since",
		file: "commit.go", tests: commitTests + "|Time|Late",
		old: "\t\tif late {\n\t\t\tif err := w.syncToLocked",
		new: "\t\tif late && w.block < 0 {\n\t\t\tif err := w.syncToLocked",
	},
	{
		number: "103", what: "Close reports only the first of several failures",
		file: "internal/distinct/distinct.go", tests: "Close|Failure|SaidTwice",
		old: "return errors.Join(distinct...)",
		new: "return errors.Join(distinct[:min(1, len(distinct))]...)",
	},
	{
		number: "104", what: "a WriteError says that what was flushed is durable",
		file: "flush.go", tests: "Error|Fail",
		old: "Flushed: w.flushed, Durable: w.durable, AtRisk: w.writtenLocked() - w.flushed, Err: err, again: again}",
		new: "Flushed: w.flushed, Durable: w.flushed, AtRisk: w.writtenLocked() - w.flushed, Err: err, again: again}",
	},
	{
		number: "105", what: "ReadFrom under sync=group returns before the sync",
		file: "writer.go", tests: "ReadFrom|Copy|Group",
		old: "\t\tcase readErr == io.EOF && n > 0 && w.policy.Sync.Waits():\n\t\t\treturn n, w.Sync()\n",
		new: "",
	},
	{
		number: "106", what: "where there is no fdatasync nothing is synced",
		file: "target.go", tests: "Sync|Unsupported|Fdatasync",
		old: "\t\tt.datasync = false\n\t}\n\treturn t.file.Sync()",
		new: "\t\tt.datasync = false\n\t\treturn nil\n\t}\n\treturn t.file.Sync()",
	},
	{
		number: "107", what: "a pipe is taken for something that can be synced",
		file: "target.go", tests: "Pipe|Create|New",
		old: "\tif p.Sync.Mode != SyncNever && info.Mode()&never != 0 {",
		new: "\tif p.Sync.Mode != SyncNever && info.Mode()&never == never {",
	},
	{
		number: "108", what: "a second Close says that all is well",
		file: "writer.go", tests: "Close",
		old: "\t\treturn w.closeErr\n\t}\n\tw.isClosing = true",
		new: "\t\treturn nil\n\t}\n\tw.isClosing = true",
	},
	{
		number: "109", what: "a failed sync is not final: the next one is tried",
		file: "commit.go", tests: commitTests,
		old:  "\t\tcase w.final != nil || w.sealed:\n\t\t\treturn w.sealedErrLocked()\n",
		new:  "\t\tcase w.sealed:\n\t\t\treturn ErrClosed\n",
		also: []edit{{"writer.go", "\t\treturn err\n\t}\n\treturn w.final\n}", "\t\treturn err\n\t}\n\treturn nil\n}"}},
	},
	{
		number: "110", what: "a full disk stops the syncs by time for good",
		file: "commit.go", tests: commitTests + "|Full|Time",
		old: "\t\t\tw.syncTimer.Arm() // try again in a while\n",
		new: "",
	},
	{
		number: "111", what: "a full disk stops the flushes by time for good",
		file: "flush.go", tests: flushTests + "|Full",
		old: "\t\tw.flushTimer.Arm() // try again in a while\n",
		new: "",
	},
	{
		number: "112", what: "a WaitDurable whose context ended is not woken",
		file: "commit.go", tests: "WaitDurable|Context",
		old: "\t\t\tdefer w.mu.Unlock()\n\t\t\tw.commit.wakeAll()\n",
		new: "\t\t\tdefer w.mu.Unlock()\n",
	},
	{
		number: "113", what: "an Enqueue past the memory says that none of a cut write is accepted",
		file: "writer.go", tests: "Enqueue",
		old: "\t\tn, err = w.bypassLocked(p)\n\t\treturn n, w.writtenLocked(), err\n",
		new: "\t\tend = w.writtenLocked()\n\t\tn, err = w.bypassLocked(p)\n\t\treturn n, end, err\n",
	},
	{
		number: "114", what: "a new Lane does not take its buffer from the Writer's memory",
		file: "lane.go", tests: laneTests + "|Memory|Bound",
		old: "\tw.room -= len(l.buf)\n",
		new: "",
	},
	{
		number: "115", what: "a Lane that is closed keeps its share of the memory",
		file: "lane.go", tests: laneTests,
		old: "\tw.room += len(l.buf)\n",
		new: "",
	},
	{
		number: "116", what: "bytes wait in memory for the sync before, where only a sync by time is asked",
		file: "writer.go", tests: "Time|Sync|Bound",
		old: "w.flushTimer.Init(deadline.Shortest(p.FlushEvery, p.Sync.Every), func()",
		new: "w.flushTimer.Init(p.FlushEvery, func()",
	},
	{
		number: "117", what: "a sync of a real file is counted and not made",
		file: "target.go", tests: "Reach|Sync",
		old: "\tif t.datasync {\n\t\terr := t.handle.Datasync()",
		new: "\tif t.datasync {\n\t\treturn nil\n\t}\n\tif t.datasync {\n\t\terr := t.handle.Datasync()",
	},
	{
		number: "118", what: "a file that got no byte is closed without the sync of its name",
		file: "writer.go", tests: "Reach|Name|Empty",
		old: "\tif w.flushed == w.writtenLocked() {\n\t\treturn w.syncToLocked(",
		new: "\tif w.writtenLocked() == 0 {\n\t\treturn nil\n\t}\n\tif w.flushed == w.writtenLocked() {\n\t\treturn w.syncToLocked(",
	},
	{
		number: "131", what: "bytes that are due for a sync wait for what a leader flushes",
		file: "commit.go", tests: commitTests + "|SyncByBytes",
		old: "last || w.bytesDueLocked() {",
		new: "last {",
	},

	// The system calls themselves: what is counted above them is not what is made.
	{
		number: "121", what: "fdatasync of a Writer's file is not asked of the kernel",
		file: "internal/sys/handle_linux.go",
		old:  "return Disk{}.Datasync(int(fd)) })",
		new:  "return nil })",
	},
	{
		number: "122", what: "fsync of a directory is not asked of the kernel",
		file: "internal/sys/dirsync.go",
		old:  "error { return d.Sync() }",
		new:  "error { return nil }",
	},
	{
		number: "123", what: "fsync of a whole file is not asked of the kernel",
		file: "internal/sys/disk_linux.go",
		old:  "\tif err := syscall.Fsync(fd); err != nil {",
		new:  "\tif err := error(nil); err != nil {",
	},
	{
		number: "124", what: "fdatasync of a file that is appended to is not asked of the kernel",
		file: "internal/sys/disk_linux.go",
		old:  "\tif err := syscall.Fdatasync(fd); err != nil {",
		new:  "\tif err := error(nil); err != nil {",
	},
	{
		number: "125", what: "syncfs is not asked of the kernel",
		file: "internal/sys/syncall_linux.go",
		old:  "\tif err := unix.Syncfs(fd); err != nil {\n\t\treturn err\n\t}\n\treturn d.Sync(fd)",
		new:  "\treturn d.Sync(fd)",
	},
	{
		number: "126", what: "the fsync that closes the gaps of syncfs is not asked of the kernel",
		file: "internal/sys/syncall_linux.go",
		old:  "\treturn d.Sync(fd)\n",
		new:  "\treturn nil\n",
	},
	{
		number: "127", what: "a kernel before 5.17 is trusted with syncfs",
		file: "internal/sys/syncall_linux.go",
		old:  "has > major || has == major && then >= minor",
		new:  "has >= major && then >= 0",
	},
	{
		number: "128", what: "an overlay of another file system is trusted with syncfs",
		file: "internal/sys/syncall_linux.go",
		old:  "unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC,",
		new:  "unix.XFS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC,",
	},
	{
		number: "129", what: "a close that was interrupted is made again, on whatever has the number by then",
		file: "internal/sys/disk_linux.go",
		old:  "e != unix.EINTR {\n\t\treturn errnoError(e)\n\t}\n\treturn nil",
		new:  "e != unix.EINTR {\n\t\treturn errnoError(e)\n\t}\n\treturn syscall.Close(fd)",
	},
	{
		number: "130", what: "a pipe that nobody reads is waited for",
		file: "internal/sys/disk_linux.go",
		old:  "return openat(dir, name, flag|unix.O_NONBLOCK, perm)",
		new:  "return openat(dir, name, flag, perm)",
	},

	// The lock, the lanes' fence, panics, and the leader.
	{
		number: "821", what: "the goroutine that has taken the lock keeps the right to try on",
		file: "lock.go", tests: "Lock|Park",
		old: "\tl.queue.Unlock()\n",
		new: "",
	},
	{
		number: "822", what: "all waiters for the lock spin",
		file: "lock.go", tests: "Lock|Park",
		old:        "\tl.queue.Unlock()\n",
		new:        "",
		also:       []edit{{"lock.go", "\tl.queue.Lock()\n", ""}},
		equivalent: "it is only slower: the benchmark with more Ps than CPUs holds it",
	},
	{
		number: "823", what: "a panic of the file does not poison the Writer",
		file: "writer.go", tests: "Panic|Poison",
		old: "\t\t\tw.poisonLocked(method, cause)\n\t\t\tpanic(cause)",
		new: "\t\t\tpanic(cause)",
	},
	{
		number: "824", what: "after a Write that panicked the next one goes on",
		file: "writer.go", tests: "Panic|Poison",
		old: "\t\tw.sealed = w.sealed || method == \"Write\"\n",
		new: "",
	},
	{
		number: "825", what: "a part of a record whose copy panicked stays",
		file: "writer.go", tests: "Panic|Poison|Fault",
		old: "\t\tw.lap, w.pos = lap, pos\n",
		new: "\t\t_, _ = lap, pos\n",
	},
	{
		number: "826", what: "a WaitDurable that leads waits for its sync whatever its context does",
		file: "commit.go", tests: "WaitDurable|Context",
		old: "\t\t\tif ctx.Done() == nil {\n",
		new: "\t\t\tif ctx != nil {\n",
	},
	{
		number: "827", what: "waiters for a sync that panicked get no error",
		file: "commit.go", removed: "the poisoned Writer reports it; the second way is gone",
	},
	{
		number: "828", what: "under sync=each a goroutine that runs takes the turn before all that wait",
		file: "flush.go", tests: "Each|Starve|Turn",
		old: "t.given = t.waiting > 0 && (t.passed >= maxPassed || w.policy.Sync.Mode == SyncEach)",
		new: "t.given = t.waiting > 0 && t.passed >= maxPassed",
	},
	{
		number: "829", what: "where membarrier is lost a limit ends without a fence",
		file: "lane.go", tests: laneTests + "|Barrier",
		old: "\tw.barrier.Store(false)\n\truntime.ReadMemStats(new(runtime.MemStats))\n",
		new: "\tw.barrier.Store(false)\n\t_ = runtime.ReadMemStats\n",
	},
	{
		number: "830", what: "a Writer without a pause takes the room that is made for the lanes",
		file: "lane.go", tests: laneTests,
		old:  "\tw.merging++\n",
		new:  "",
		also: []edit{{"lane.go", "\t\tw.merging--\n", ""}},
	},
	{
		number: "891", what: "a sync by bytes that falls due during a call's sync is forgotten",
		file: "commit.go", tests: "ByBytes|Fault",
		old: "\t\tw.syncBytesLocked()\n\t\tw.idle.Broadcast()\n",
		new: "\t\tw.idle.Broadcast()\n",
	},
	{
		number: "892", what: "a sync by bytes does not count what bypasses the buffer",
		file: "flush.go", tests: "ByBytes|Fault",
		old: "\tw.restartLocked()\n\tw.syncBytesLocked()\n",
		new: "\tw.restartLocked()\n",
	},

	// What speed asks of memory: no result shows it, but what memory holds and how it is flushed.
	{
		number: "893", what: "a Write of 64 KiB is copied through a buffer that is larger",
		file: "writer.go", tests: "LongWrite",
		old: "min(p.Buffer, direct-1)",
		new: "min(p.Buffer, direct)",
	},
	{
		number: "894", what: "a strip is as long as the buffer, also in a file of the system",
		file: "writer.go", tests: "Memory",
		old: "\t\tw.strip = min(w.strip, int(hot))\n",
		new: "\t\t_ = hot\n",
	},
	{
		number: "895", what: "memory begins with a whole strip",
		file: "ring.go", tests: "Memory",
		old: "size = min(most, max(need, first, growth*len(w.buf)))",
		new: "size = max(most, min(need, first, growth*len(w.buf)))",
	},
	{
		number: "896", what: "a lane of a buffer of 64 KiB has 512 bytes",
		file: "lane.go", tests: laneTests,
		old: "return max(least, min(good, w.block/32), w.block/128)",
		new: "return max(least, min(good, w.block/128), w.block/128)",
	},
	{
		number: "897", what: "the ring of a large buffer goes on though flushes keep up",
		file: "ring.go", tests: "Ring",
		old: "\t\t\tmost = w.strip / 2 ",
		new: "\t\t\tmost = 0 ",
	},
	{
		number: "898", what: "the ring starts anew so that a strip lies across its end",
		file: "ring.go", tests: "Ring",
		old: "\t\tto = w.inStripLocked(w.flushed)\n",
		new: "",
	},
	{
		number: "899", what: "memory starts anew where what is not flushed has wrapped",
		file: "ring.go", tests: "Ring|Memory|Record",
		old: "if held > 0 && (w.flushed <= w.lap+int64(to) || held > most) {",
		new: "if held > most {",
	},
	{
		number: "901", what: "each slow block starts a flusher, which competes with a goroutine that lost its CPU",
		file: "flush.go", tests: "Slow",
		old: "if w.flushing || w.slow && before {",
		new: "if w.flushing || w.slow || before && w.slow {",
	},
	{
		number: "902", what: "the Write that fills the first block flushes it, however slowly that came",
		file: "writer.go", tests: "Slow",
		old: "\t\tslow:    true,\n",
		new: "",
	},
	{
		number: "900", what: "what a lane has merged stays in it when the copy of the next record panics",
		file: "lane.go", tests: "Fault",
		old: "\tif l.taken == l.n.Load() { // nothing is held, also if the copy panics\n\t\tl.taken, l.sure = 0, 0\n\t\tl.n.Store(0)\n\t}\n\tat := int(l.n.Load())\n",
		new: "\tat := int(l.n.Load())\n\tif int(l.taken) == at {\n\t\tat, l.taken = 0, 0\n\t}\n",
	},
	{
		number: "X1", what: "a WaitDurable that begins beside Close does not wait for its sync",
		file: "commit.go", tests: "WaitDurableBeside",
		old: "\tif !w.isClosing {\n\t\tif err := w.refusalLocked(); err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n",
		new: "\tif err := w.refusalLocked(); err != nil {\n\t\treturn err\n\t}\n",
	},
	{
		number: "X2", what: "Close on a full disk syncs beside the sync in flight",
		file: "writer.go", tests: "CloseOnAFullDisk",
		old: "\tfor w.commit.leading {\n\t\tw.idle.Wait()\n\t}\n\tif w.final",
		new: "\tif w.final",
	},
	{
		number: "X3", what: "a failed write counts as at risk in memory what the kernel has",
		file: "flush.go", tests: "AtRisk",
		old: "AtRisk: w.writtenLocked() - w.flushed, Err",
		new: "AtRisk: w.writtenLocked() - w.durable, Err",
	},
	{
		number: "X4", what: "a failed sync does not count what memory holds",
		file: "commit.go", tests: "AtRisk",
		old: "AtRisk: w.writtenLocked() - w.durable, Err",
		new: "AtRisk: w.flushed - w.durable, Err",
	},
	{
		number: "X5", what: "what came before a sync that does not cover it loses its age",
		file: "commit.go", tests: "KeepsItsAge",
		old: "\tw.age.Durable(covers)\n",
		new: "\tw.age.Durable(w.flushed)\n",
	},
	{
		number: "X6", what: "Close leaves the directory open that no sync reached",
		file: "target.go", tests: "ClosesTheDirectory",
		old: "errors.Join(t.entry.close(), t.file.Close())",
		new: "t.file.Close()",
	},
	{
		number: "X7", what: "a byte whose WriteByte fails is merged while the failure waits",
		file: "lane.go", tests: "ByteThatIsRefused",
		old: "\tif l.w.trouble || l.closed {\n",
		new: "\tif l.closed {\n",
	},
}
