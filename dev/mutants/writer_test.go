package mutants

// The file under a Writer. The patterns name the tests that know the code; without one
// all tests of the package are run at once.
var writerMutants = []mutant{
	{
		number: "02", what: "a failed sync of the Writer is made again",
		file: "target.go", tests: "FailedSync|FaultMatrix",
		old: "\tif err := t.syncData(); err != nil {\n\t\tt.entry.Lose()\n\t\treturn 1, err",
		new: "\terr = t.syncData()\n\tif err != nil {\n\t\terr = t.syncData()\n\t}\n\tif err != nil {\n\t\tt.entry.Lose()\n\t\treturn 1, err",
	},
	{
		number: "03b", what: "Create never syncs the directory, and counts the call",
		file: "target.go", tests: "Name|Create|Directory",
		old: "\t\tif err := t.entry.Sync(); err != nil {\n\t\t\treturn calls, err\n\t\t}",
		new: "\t\tt.entry.Pending = false",
	},
	{
		number: "05", what: "a short write without an error counts as a whole one",
		file: "target.go", tests: "Short|Fault",
		old: "\t\tif err == nil && k > 0 {\n",
		new: "\t\tif err == nil && k > 0 {\n\t\t\tn = len(p)\n",
	},
	{
		number: "08e", what: "OpenFile says that a file without a name has one",
		file: "internal/sys/openfile_linux.go", tests: "OpenFile",
		old: " && is.Links > 0",
		new: "",
	},
	{
		number: "22", what: "the Writer does not notice that its file has no name any more",
		file: "target.go", tests: "Unlinked|Name",
		old: "\t\tif links == 0 {",
		new: "\t\tif links == 0 && err != nil {",
	},
	{
		number: "103", what: "Close reports only the first of several failures",
		file: "internal/distinct/distinct.go", tests: "Close|Failure|SaidTwice",
		old: "return errors.Join(distinct...)",
		new: "return errors.Join(distinct[:min(1, len(distinct))]...)",
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
		number: "117", what: "a sync of a real file is counted and not made",
		file: "target.go", tests: "Reach|Sync",
		old: "\tif t.datasync {\n\t\th, err := t.look()",
		new: "\tif t.datasync {\n\t\treturn nil\n\t}\n\tif t.datasync {\n\t\th, err := t.look()",
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

	// The lock.
	{
		number: "821", what: "the goroutine that has taken the lock keeps the right to try on",
		file: "internal/spin/mutex.go", tests: "Lock|Park",
		old: "\tm.queue.Unlock()\n",
		new: "",
	},
	{
		number: "822", what: "all waiters for the lock spin",
		file: "internal/spin/mutex.go", tests: "Lock|Park",
		old:        "\tm.queue.Unlock()\n",
		new:        "",
		also:       []edit{{"internal/spin/mutex.go", "\tm.queue.Lock()\n", ""}},
		equivalent: "it is only slower: the benchmark with more Ps than CPUs holds it",
	},
	{
		number: "833", what: "a goroutine that waits for the lock keeps its thread's processor",
		file: "internal/spin/mutex.go", tests: "Lock",
		old: "\t\tsys.YieldThread()\n",
		new: "\t\t_ = sys.YieldThread\n",
	},
	{
		number: "X6", what: "Close leaves the directory open that no sync reached",
		file: "target.go", tests: "ClosesTheDirectory",
		old: "errors.Join(t.entry.Close(), t.file.Close())",
		new: "t.file.Close()",
	},
}
