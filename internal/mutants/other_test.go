package mutants

// Reading, policies, copying, statistics, result files and the command.
const (
	readTests = "Read|Line|Peek|Discard|Block|Byte|Way|WriteTo"
	copyTests = "Copy|Copies|Copied|Tree|Resum"
)

var otherMutants = []mutant{
	{
		number: "16", what: "read and write leave the last partial block of a read to the next one",
		file: "filecopy/bytes.go",
		old:  "b[:min(n, int64(len(b)))], at)",
		new:  "b[:max(min(n, 1), min(n, int64(len(b)))&^4095)], at)",

		equivalent: "what is left is read and written by the next call: the loop ends at the end of the range",
	},
	{
		number: "16b", what: "the last partial block is not written, and reported as copied",
		file: "filecopy/bytes.go", tests: copyTests,
		old: "j.disk.WriteAt(j.out, b[moved:got], at+int64(moved))\n\t\tmoved += n\n",
		new: "j.disk.WriteAt(j.out, b[moved:got-got%4096], at+int64(moved))\n\t\tif moved += n; err == nil {\n\t\t\tmoved, n = got, got\n\t\t}\n",
	},
	{
		number: "17", what: "a Peek across a block edge takes the byte that UnreadByte would give back",
		file: "readahead/refill.go", tests: "UnreadByte",
		old: "\tif r.pos > r.low && unread < r.head {\n\t\tkept = r.view[r.pos-1:]\n\t}\n",
		new: "",
	},
	{
		number: "17b", what: "the last byte of a line longer than the block is lost when it is moved",
		file: "readahead/refill.go", tests: readTests,
		old: "r.long[:n], 0, 0",
		new: "r.long[:n-1], 0, 0",
	},
	{
		number: "29", what: "an atomic copy is renamed before its bytes are synced",
		file: "filecopy/file.go", tests: copyTests,
		old: "\tif !j.sync {\n\t\treturn nil\n\t}\n\tif err := sys.Uninterrupted",
		new: "\tif !j.sync || j.o.Atomic && !j.o.Verify {\n\t\treturn nil\n\t}\n\tif err := sys.Uninterrupted",
		also: []edit{{"filecopy/one.go", "\tr.Outcome = holdfast.OutcomeWritten\n\tif !c.durable() {",
			"\tif fd, err := c.disk.OpenSource(to.dir, made.name); err == nil {\n\t\t_ = c.disk.Sync(fd)\n\t\tc.disk.Close(fd)\n\t}\n\tr.Outcome = holdfast.OutcomeWritten\n\tif !c.durable() {"}},
	},
	{
		number: "37", what: "the hole at the end of a sparse file is not kept",
		file: "filecopy/bytes.go", tests: copyTests,
		old: "\treturn j.truncate(size)\n",
		new: "\treturn nil\n",
	},

	// The Reader.
	{
		number: "301", what: "UnreadByte after a Read past the memory gives another byte back",
		file: "readahead/reader.go", tests: readTests,
		old: "r.single[0] = p[n-1]",
		new: "r.single[0] = p[0]",
	},
	{
		number: "302", what: "an error that came with bytes is forgotten, and the source asked again",
		file: "readahead/refill.go", tests: readTests,
		old: "\tr.err = err\n\tif n == 0 {",
		new: "\tif n == 0 {\n\t\tr.err = err",
	},
	{
		number: "303", what: "a line of just MaxLine bytes is too long if it lies across two blocks",
		file: "readahead/lines.go", tests: readTests,
		old: "if end := searched + i; i >= 0 && end <= r.maxLine {",
		new: "if end := searched + i; i >= 0 && end < r.maxLine {",
	},
	{
		number: "304", what: "of a line that ends in several carriage returns all are taken",
		file: "readahead/lines.go", tests: readTests,
		old: "\t\treturn line[:n-1]\n\t}\n\treturn line",
		new: "\t\treturn bytes.TrimRight(line, \"\\r\")\n\t}\n\treturn line",
	},
	{
		number: "305", what: "the block that a line lies in is given to the goroutine that reads ahead",
		file: "readahead/refill.go", tests: readTests,
		old: "\t\tr.ahead.give(r.mem)\n\t\tr.mem = b.mem\n",
		new: "\t\tr.ahead.give(b.mem)\n",
	},
	{
		number: "306", what: "DropBehind drops less than was read where the Reader did not begin at 0",
		file: "readahead/source.go", tests: "Drop",
		old: "b.advice.DontNeed(from, b.begin+read-from)",
		new: "b.advice.DontNeed(from, max(0, read-from))",
	},
	{
		number: "307", what: "WriteTo consumes what the writer did not take",
		file: "readahead/reader.go", tests: readTests,
		old: "\t\t\tr.pos += k\n\t\t\tn += int64(k)\n\t\t\tif err == nil && r.buffered() > 0 {",
		new: "\t\t\trest := r.buffered() - k\n\t\t\tr.pos = len(r.view)\n\t\t\tn += int64(k)\n\t\t\tif err == nil && rest > 0 {",
	},
	{
		number: "308", what: "Err reports a failure before the bytes that come first are consumed",
		file: "readahead/reader.go", tests: readTests + "|Err",
		old: "\tif r.buffered() > 0 {\n\t\treturn nil\n\t}\n\treturn notEOF(r.err)",
		new: "\treturn notEOF(r.err)",
	},
	{
		number: "309", what: "Close forgets what ended the reading",
		file: "readahead/reader.go", tests: readTests + "|Err|Close",
		old: "\tr.last = r.Err()\n\tr.closed = true\n",
		new: "\tr.closed = true\n\tr.last = r.Err()\n",
	},
	{
		number: "310", what: "Close returns while a Read in the background is under way",
		file: "readahead/reader.go", tests: readTests + "|Close|Ahead",
		old:  "\terr := r.source.close()\n\tr.ahead.wait()\n\treturn err",
		new:  "\treturn r.source.close()",
		also: []edit{{"readahead/reader.go", "\t\tr.ahead.wait()\n\t\treturn r.source.close()\n", "\t\treturn r.source.close()\n"}},
	},
	{
		number: "311", what: "a source that gives nothing for ever is asked for ever",
		file: "readahead/source.go", tests: readTests + "|Progress",
		old: "for range maxEmptyReads {",
		new: "for range maxEmptyReads << 40 {",
	},

	// Policy, Loss and sizes.
	{
		number: "321", what: "the end of the process takes one buffer at most",
		file: "policy.go", tests: "Loss|Loses|Polic",
		old: "return Bound{Bytes: 2 * p.Buffer,",
		new: "return Bound{Bytes: p.Buffer,",
	},
	{
		number: "322", what: "a sync by time does not bound what the end of the process takes",
		file: "policy.go", tests: "Loss|Loses|Polic",
		old: "Time: cmp.Or(deadline.Shortest(p.FlushEvery, p.Sync.Every), Unlimited)}",
		new: "Time: cmp.Or(deadline.Shortest(p.FlushEvery), Unlimited)}",
	},
	{
		number: "323", what: "a power cut takes nothing under sync=close and sync=1s",
		file: "policy.go", tests: "Loss|Loses|Polic",
		old: "func (p Policy) powerLoss() Bound {\n\tswitch {\n\tcase p.Sync.Waits():",
		new: "func (p Policy) powerLoss() Bound {\n\tswitch {\n\tcase p.Sync.Mode != SyncNever:",
	},
	{
		number: "324", what: "a flush by time without a buffer is a policy",
		file: "policy.go", tests: "Polic|Parse|Valid",
		old: "p.Buffer == 0 && (p.FlushEvery > 0 || p.FlushBytes > 0):",
		new: "p.Buffer < 0 && (p.FlushEvery > 0 || p.FlushBytes > 0):",
	},
	{
		number: "325", what: "a field of a policy may be given twice",
		file: "policy.go", tests: "Polic|Parse",
		old: "\t\tseen[key] = true\n",
		new: "",
	},
	{
		number: "326", what: "a size of just 8 EiB wraps to a negative one",
		file: "size.go", tests: "Size|Parse",
		old: "n > math.MaxInt64/int64(factor) {",
		new: "n > math.MaxInt64/int64(factor)+1 {",
	},
	{
		number: "327", what: "kB is 1024",
		file: "size.go", tests: "Size|Parse",
		old: "\"kB\": 1e3,",
		new: "\"kB\": KiB,",
	},
	{
		number: "328", what: "a policy's text that can't be read leaves half of it",
		file: "policy.go", tests: "Polic|Parse|Text",
		old: "\tv, err := ParsePolicy(string(text))\n\tif err == nil {\n\t\t*p = v\n\t}\n\treturn err",
		new: "\tv, err := ParsePolicy(string(text))\n\t*p = v\n\treturn err",
	},
	{
		number: "329", what: "a period of zero or less is taken for another sync",
		file: "policy.go", tests: "Polic|Period",
		old: "s.Every < 0 || s.Bytes < 0 || s.Every == 0 && s.Bytes == 0)",
		new: "s.Every == 0 && s.Bytes == 0)",
	},
	{
		number: "890", what: "the loss of a sync by bytes leaves out what waits in memory",
		file: "policy.go", tests: "Loss|Loses|Polic",
		old: "Bytes: p.Sync.Bytes + 2*p.Buffer,",
		new: "Bytes: p.Sync.Bytes,",
	},

	// Copies.
	{
		number: "401", what: "a source that was written to with its old time put back is reported unchanged",
		file: "filecopy/file.go", tests: copyTests,
		old: " || !now.Changed.Equal(j.was.Changed)\n",
		new: "\n",
	},
	{
		number: "402", what: "verify takes a copy that is too short for equal",
		file: "filecopy/verify.go", tests: copyTests + "|Verif|Spoil",
		old: "if !bytes.Equal(source[:got], copied[:back]) {",
		new: "if !bytes.Equal(source[:min(got, back)], copied[:min(got, back)]) {",
	},
	{
		number: "403", what: "verify reads the page cache",
		file: "filecopy/verify.go", tests: copyTests + "|Verif|Spoil",
		old:  "\t\tif left == 0 {\n\t\t\treturn nil",
		new:  "\t\tif left >= 0 {\n\t\t\treturn nil",
		also: []edit{{"filecopy/verify.go", "return cache.Evict(j.out) }", "return nil }"}},
	},
	{
		number: "404", what: "a copy takes away a file that appeared meanwhile",
		file: "filecopy/file.go", tests: copyTests,
		old: "\t\tif !m.replaces {\n\t\t\trename = c.disk.RenameNew\n\t\t}\n",
		new: "",
	},
	{
		number: "405", what: "temporaries of other copies are collected without the lock",
		file: "filecopy/leftover.go", tests: copyTests + "|Leftover|Mark",
		old: "\tif err := sys.Uninterrupted(func() error { return m.t.disk.Lock(fd) }); err != nil {",
		new: "\tif err := sys.Uninterrupted(func() error { return m.t.disk.Lock(fd) }); err != nil && fd < 0 {",
	},
	{
		number: "406", what: "a file of another user is taken for what a killed copy has left",
		file: "filecopy/leftover.go", tests: copyTests + "|Leftover|Mark",
		old: "name, j.mayOwn) == nil {",
		new: "name, func(uint32) bool { return true }) == nil {",
	},
	{number: "407", what: "a file with a second name is taken for what a killed copy has left", file: "copyleftover.go", removed: "copies ask the same function as replacements now, and 856 is that"},
	{
		number: "408", what: "names given after the sync of a whole file system are reported durable by it",
		file: "internal/durable/step.go", tests: "Step",
		old: "\t\tat.Device.synced, at.Device.names = false, 0\n",
		new: "\t\tat.Device.names = 0\n",
	},
	{
		number: "409", what: "a lost name of a directory taints only what is right in it",
		file: "filecopy/batch.go", tests: copyTests + "|Lost|Batch",
		old: "\tfor ; n != nil && err == nil; n = n.above {",
		new: "\tfor ; n != nil && err == nil; n = nil {",
	},
	{
		number: "410", what: "a source that grew before it was cloned makes a longer copy",
		file: "filecopy/bytes.go", tests: copyTests,
		old: "\tif j.has.Size > j.was.Size { // the source has grown since it was opened\n\t\tif err := j.truncate(j.was.Size); err != nil {\n\t\t\treturn true, err\n\t\t}\n\t}\n",
		new: "",
	},
	{
		number: "411", what: "an existing hard link leaves a temporary beside it",
		file: "filecopy/links.go", tests: copyTests + "|Link",
		old: "\t\tif err == nil && idOf(copied) == idOf(is) {",
		new: "\t\tif err == nil && idOf(copied) == idOf(is) && is.Links > 1000 {",
	},
	{
		number: "412", what: "a copy keeps the setuid bit though it has another owner",
		file: "filecopy/keep.go", tests: copyTests,
		old: "permission.WithoutList(of.Mode&0o777, list)",
		new: "permission.WithoutList(of.Mode&vfs.PermMask, list)",
	},
	{
		number: "413", what: "an archived copy keeps the access list that its directory gave it",
		file: "filecopy/keep.go", tests: copyTests,
		old: "\tif !slices.Contains(names, permission.AccessList) {",
		new: "\tif slices.Contains(names, permission.AccessList) {",
	},
	{
		number: "414", what: "a change of owner takes the setuid bit from an archived copy",
		file: "filecopy/keep.go", tests: copyTests,
		old: "\t\tj.changed = true // bits may have gone\n",
		new: "",
	},
	{
		number: "415", what: "what an interrupted copy has left is gone on with unread",
		file: "filecopy/resume.go", tests: copyTests,
		old: "\tproven, err := j.firstDifference(j.done)\n",
		new: "\tproven, err := int64(-1), error(nil)\n",
	},
	{
		number: "416", what: "two copies at once go on with the same partial file",
		file: "filecopy/resume.go", tests: copyTests,
		old: "\tif err != nil && !cannot(err) && !errors.Is(err, syscall.ENOLCK) {",
		new: "\tif err != nil && !cannot(err) && !errors.Is(err, syscall.ENOLCK) && !errors.Is(err, syscall.EWOULDBLOCK) {",
	},
	{
		number: "417", what: "a partial file of another user is gone on with",
		file: "filecopy/resume.go", tests: copyTests,
		old: "\tif !j.mayOwn(is.UID) {",
		new: "\tif !j.mayOwn(is.UID) && is.Links > 1 {",
	},
	{
		number: "418", what: "a source that shrank while it was copied is reported as whole",
		file: "filecopy/file.go", tests: copyTests,
		old: "shrank < j.was.Size && j.r.Changed {",
		new: "shrank < 0 && j.r.Changed {",
	},
	{
		number: "419", what: "a copy that was verified and found wrong gets its name all the same",
		file: "filecopy/batch.go", tests: copyTests + "|Verif|Spoil",
		old: "\t\t\t\t\tp.failed = opVerify\n",
		new: "\t\t\t\t\tp.Err = nil\n",
	},
	{
		number: "420", what: "room that was never written becomes a hole of the copy",
		file: "filecopy/holes.go", tests: copyTests,
		old: "\t\tif both.At < both.End {",
		new: "\t\tif both.At < 0 {",
	},
	{
		number: "422", what: "a directory that can't be opened to be synced counts as synced",
		file: "filecopy/batch.go", tests: "CanNotBeOpened",
		old: "\t\th, err := b.t.use(n, atDestination)\n\t\tif err != nil {\n\t\t\treturn err",
		new: "\t\th, err := b.t.use(n, atDestination)\n\t\tif err != nil {\n\t\t\treturn nil",
	},
	{
		number: "421", what: "the directories of a part that failed to be synced are not remembered",
		file: "internal/durable/step.go", tests: "Step",
		old: "\t\tat.err = err\n",
		new: "\t\t_ = err\n",
	},

	// Statistics and result files.
	{
		number: "501", what: "nine rounds are enough for a verdict",
		file: "internal/lab/stat/compare.go",
		old:  "if pairs < VerdictRounds {",
		new:  "if pairs < VerdictRounds-1 {",
	},
	{
		number: "502", what: "a noise floor above the band does not keep two cells from being the same",
		file: "internal/lab/stat/compare.go",
		old:  "-band <= low && high <= band && floor <= band:",
		new:  "-band <= low && high <= band:",
	},
	{
		number: "503", what: "faster is said where the estimate, not the whole interval, is beyond the floor",
		file: "internal/lab/stat/compare.go",
		old:  "verdict(n, e.low, e.high, math.Log1p(floor)",
		new:  "verdict(n, e.centre, e.centre, math.Log1p(floor)",
	},
	{
		number: "504", what: "many cells are compared with the confidence of one pair",
		file: "internal/lab/stat/group.go",
		old:  "pairs := max(1, cells*(cells-1)/2)",
		new:  "pairs := max(1, cells/1000)",
	},
	{
		number: "505", what: "a cost of zero has a logarithm",
		file: "internal/lab/stat/compare.go",
		old:  "if !(x > 0) || math.IsInf(x, 0) {",
		new:  "if !(x >= 0) || math.IsInf(x, 0) {",
	},
	{
		number: "506", what: "the interval of a median is a rank too narrow",
		file: "internal/lab/stat/summary.go",
		old:  "\t\tif 2*tail > 1-confidence {",
		new:  "\t\tif tail > 1-confidence {",
	},
	{
		number: "507", what: "a run is settled though a group has no interval yet",
		file: "internal/lab/stat/settled.go",
		old:  "\t\t\t\twidest = max(widest, c.Width())",
		new:  "\t\t\t\tif c.HasInterval() {\n\t\t\t\t\twidest = max(widest, c.Width())\n\t\t\t\t}",
	},
	{
		number: "508", what: "a drift of half of what is doubtful is reported",
		file: "internal/lab/stat/drift.go",
		old:  "z := max(0, math.Abs(score)-1) /",
		new:  "z := max(0, 2*math.Abs(score)) /",
	},
	{
		number: "511", what: "a torn last line of results stands before what is resumed",
		file: "internal/lab/result/file.go",
		old:  "f.size = int64(bytes.LastIndexByte(text, '\\n') + 1)",
		new:  "f.size = int64(len(text))",
	},
	{
		number: "512", what: "NUL bytes in the middle of a results file are no error",
		file: "internal/lab/result/file.go",
		old:  "\tcase bytes.IndexByte(line, 0) >= 0:\n\t\treturn ErrNUL\n",
		new:  "\tcase bytes.IndexByte(line, 0) >= 0:\n\t\treturn nil\n",
	},
	{
		number: "513", what: "a run that was resumed after its end counts as complete",
		file: "internal/lab/result/file.go",
		old:  "r.Resumed, r.End = append(r.Resumed, v), nil",
		new:  "r.Resumed = append(r.Resumed, v)",
	},
	{
		number: "514", what: "results of a newer version are read",
		file: "internal/lab/result/file.go",
		old:  "\tif v.SchemaVersion > SchemaVersion {",
		new:  "\tif v.SchemaVersion > SchemaVersion+1 {",
	},
	{
		number: "515", what: "a line of results that a full disk has cut stays in the file",
		file: "internal/lab/result/file.go",
		old:  "return errors.Join(err, f.file.Truncate(f.size), seekErr)",
		new:  "return errors.Join(err, seekErr)",
	},
	{
		number: "516", what: "an existing results file is written over",
		file: "internal/lab/result/file.go",
		old:  "os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)",
		new:  "os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)",
	},

	// The command: gen and write.
	{
		number: "601", what: "gen of a file that must be durable does not sync its name",
		file: "cmd/holdfast/internal/gen/file.go", tests: "Gen|gen",
		old: "\"sync of the directory\", syncDir(held)",
		new: "\"sync of the directory\", error(nil)",
	},
	{
		number: "602", what: "gen leaves its temporary when the disk is full",
		file: "cmd/holdfast/internal/gen/file.go", tests: "Gen|gen|Script",
		old: "\t\tos.Remove(g.temporary) // the first failure is the one that is reported\n",
		new: "",
	},
	{
		number: "603", what: "gen removes a temporary that another gen has locked",
		file: "cmd/holdfast/internal/gen/file.go", tests: "Gen|gen|Leftover",
		old: "if ok, err := sys.TryLock(f); err == nil && ok && sameFile(f, name) {",
		new: "if _, err := sys.TryLock(f); err == nil && sameFile(f, name) {",
	},
	{
		number: "604", what: "gen takes a file away that was made meanwhile",
		file: "cmd/holdfast/internal/gen/file.go", tests: "Gen|gen",
		old: "if !replace || !errors.Is(err, fs.ErrExist) {",
		new: "if !errors.Is(err, fs.ErrExist) {",
	},
	{
		number: "604b", what: "the same where files have a name from the beginning",
		file: "cmd/holdfast/internal/gen/file.go", tests: "Gen|gen",
		old: "\tcase errors.Is(err, fs.ErrExist):\n\t\treturn false, \"rename\", err\n\t}\n",
		new: "\t}\n",
	},
	{
		number: "605", what: "gen of several chunks writes the first one's bytes again",
		file: "cmd/holdfast/internal/gen/file.go", tests: "Gen|gen",
		old: "bytes.ReadAt(chunk, done)",
		new: "bytes.ReadAt(chunk, 0)",
	},
	{
		number: "611", what: "write loses the beginning of a line that lies across three blocks",
		file: "cmd/holdfast/internal/write/intake.go", tests: "Split|Intake|Line|Write",
		old: "\t\ts.rest = append(s.rest, text...)\n\t\treturn\n",
		new: "\t\ts.rest = append(s.rest[:min(len(s.rest), blockSize)], text...)\n\t\treturn\n",
	},
	{
		number: "612", what: "write gives a last line without an end no line feed",
		file: "cmd/holdfast/internal/write/intake.go", tests: "Split|Intake|Line|Write|Script",
		old: "\t\ts.rest = append(s.rest, '\\n')\n",
		new: "",
	},
	{
		number: "613", what: "a line after one that was too long is dropped too",
		file: "cmd/holdfast/internal/write/intake.go", tests: "Split|Intake|Line|Write|Script",
		old: "\ts.rest, s.dropped = s.rest[:0], 0\n",
		new: "\ts.rest = s.rest[:0]\n",
	},
	{
		number: "614", what: "write exits 0 though lines were not written",
		file: "cmd/holdfast/internal/write/write.go", pkg: "cmd/holdfast", tests: "Script|Write",
		old: "\tcase lost > 0:\n",
		new: "\tcase lost < 0:\n",
	},
	{
		number: "615", what: "bytes that were accepted and lost at the end are not reported",
		file: "cmd/holdfast/internal/write/totals.go", pkg: "cmd/holdfast", tests: "Script|Write",
		old: "\tif t.LostBytes > 0 {",
		new: "\tif t.LostBytes < 0 {",
	},

	// What root makes and removes where others may write.
	{
		number: "871", what: "a directory of another user is taken for one of ours",
		file: "internal/own/own.go", pkg: "internal/lab/volume", tests: "Stranger|Foreign|Root|Own",
		old: "\tif !isOwn(d.is) {\n",
		new: "\tif d.is == nil {\n",
	},
	{
		number: "872", what: "a directory that was exchanged while it was opened is taken for the one that was looked at",
		file: "internal/own/own.go", pkg: "internal/lab/volume", tests: "Stranger|Foreign|Root|Own",
		old: "\tif err == nil && !os.SameFile(d.is, info) {\n",
		new: "\tif err == nil && info == nil {\n",
	},
	{
		number: "873", what: "what stands under the name of a removed directory is removed too",
		file: "internal/own/own.go", pkg: "internal/lab/volume", tests: "Stranger|Foreign|Root|Own",
		old: "\tif err := d.Still(); err != nil {\n\t\treturn err\n\t}\n\treturn d.in.Remove(d.name)",
		new: "\treturn d.in.Remove(d.name)",
	},
	{
		number: "874", what: "a directory with other things in it is removed as a volume's",
		file: "internal/lab/volume/leftover_linux.go", tests: "Leftover",
		old: "\t\t\treturn fmt.Errorf(\"%q in %s is nothing that a volume has\", e.Name(), dir.Name())\n",
		new: "\t\t\t_ = fmt.Errorf\n",
	},
	{
		number: "875", what: "a directory of others that is held open is taken for one in which nobody may rename",
		file: "internal/own/path_linux.go", tests: "Path",
		old: "\t\treturn isKept(held + \".\")\n",
		new: "\t\treturn true\n",
	},
	{
		number: "876", what: "a file that can't be written is removed wherever its path leads",
		file: "cmd/holdfast/internal/cli/export.go", tests: "CannotBeWritten",
		old: "\t\treturn errors.Join(err, dir.Remove(name))\n",
		new: "\t\treturn errors.Join(err, os.Remove(path))\n",
	},
	{
		number: "877", what: "a directory is made wherever the path of the one above leads",
		file: "cmd/holdfast/internal/cli/export.go", tests: "DirectoriesAreMade",
		old: "\tin, err := HoldDir(above, perm)\n",
		new: "\tif err = os.MkdirAll(path, perm); err == nil {\n\t\troot, err = os.OpenRoot(path)\n\t\treturn &HeldDir{Root: root}, err\n\t}\n\tin, err := HoldDir(above, perm)\n",
	},
	{
		number: "878", what: "a run is taken up again in whatever results have the name",
		file: "internal/lab/result/file.go", pkg: "cmd/holdfast/internal/run", tests: "ARunGoesOn",
		old: "\tif same != nil && !same(run) {\n",
		new: "\tif same != nil && !same(run) && f == nil {\n",
	},
	{
		number: "879", what: "a directory of a copy is opened through a link",
		file: "internal/sys/diskdir_linux.go", pkg: "filecopy", tests: "Stranger",
		old: "os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)",
		new: "os.O_RDONLY|unix.O_DIRECTORY, 0)",
	},

	// The command.
	{
		number: "881", what: "a torn last line is not ended before write appends",
		file: "cmd/holdfast/internal/write/tail.go", pkg: "cmd/holdfast", tests: "Torn|Heal|Scripts",
		old: "\treturn last[0] != '\\n', nil\n",
		new: "\treturn false, nil\n",
	},
	{
		number: "882", what: "a line that the run's own full disk has cut is not ended",
		file: "cmd/holdfast/internal/write/spread.go", tests: "LineCut",
		old: "\t\tif p.cut() > 0 {\n",
		new: "\t\tif p.cut() < 0 {\n",
	},
	{
		number: "883", what: "a healed file is not counted",
		file: "cmd/holdfast/internal/write/tail.go", pkg: "cmd/holdfast", tests: "Torn|Heal|Scripts",
		old: "\t\t\ts.totals.Healed++\n",
		new: "",
	},
	{
		number: "884", what: "write writes to the file that it reads",
		file: "cmd/holdfast/internal/write/tail.go", pkg: "cmd/holdfast", tests: "Input|Scripts",
		old: "\treturn err == nil && os.SameFile(t.input, info)\n",
		new: "\treturn err == nil && info == nil\n",
	},
	{
		number: "885", what: "the loss of many files is said to be that of one",
		file: "files/loss.go", tests: "Loss",
		old: "\t\tif holdfast.Size(paths) < o.memory()/one {\n\t\t\tall.Process.Bytes = holdfast.Size(paths) * one\n",
		new: "\t\tif paths > 0 {\n\t\t\tall.Process.Bytes = one\n",
	},
	{
		number: "886", what: "the loss of many files is said to be more than the memory holds",
		file: "files/loss.go", tests: "Loss",
		old: "\t\tif holdfast.Size(paths) < o.memory()/one {\n",
		new: "\t\tif paths > 0 {\n",
	},
	{
		number: "887", what: "control characters of names reach the terminal",
		file: "cmd/holdfast/internal/cli/output.go", pkg: "cmd/holdfast", tests: "Terminal|Visible|Control|Output|Scripts",
		old: "\treturn unicode.IsControl(r) && r != '\\n' && r != '\\t' || unicode.Is(unicode.Bidi_Control, r)\n",
		new: "\treturn unicode.Is(unicode.Bidi_Control, r)\n",
	},
	{
		number: "888", what: "a name with a line feed begins a line of its own",
		file: "cmd/holdfast/internal/cli/text.go", pkg: "cmd/holdfast", tests: "Terminal|Visible|Control|Output|Line|Scripts",
		old: "string { return strings.ReplaceAll(text, \"\\n\", `\\n`) }",
		new: "string { return strings.TrimSuffix(text, \"\\x00\") }",
	},
	{
		number: "889", what: "what a results file says is Markdown of the report's own",
		file: "internal/lab/report/markdown.go",
		old:  "func markdownText(line string) string { return markdownMarks.Replace(line) }",
		new:  "func markdownText(line string) string { _ = markdownMarks; return line }",
	},
	{
		number: "990b", what: "a round is drawn where the next one lies",
		file: "internal/lab/report/curves.go", tests: "Rounds|Curves",
		old: "chart.Mark{X: float64(round), Y: middle,",
		new: "chart.Mark{X: float64(round + 1), Y: middle,",
	},
	{
		number: "991b", what: "the bars of the stages leave out the time of close",
		file: "internal/lab/report/curves.go", tests: "Stages|Curves",
		old: "return s.Open + s.Close }",
		new: "return s.Open }",
	},
	{
		number: "992b", what: "the age that a policy promises is drawn without the sync in flight",
		file: "internal/lab/report/curves.go", tests: "Ages|Curves",
		old: "[]time.Duration{bound, bound + r.LongestSync, r.Oldest}",
		new: "[]time.Duration{bound, bound, r.Oldest}",
	},
	{
		number: "993b", what: "times of Writes are drawn at a hundredth of their part",
		file: "internal/lab/report/curves.go", tests: "Latencies|Curves",
		old: "all.ValueAtPercentile(100 * share)",
		new: "all.ValueAtPercentile(share)",
	},
	{
		number: "994b", what: "the page of an audit shows what was measured as published",
		file: "internal/lab/report/audit.go", tests: "Audit",
		old: "judgedOn(c), orNone(c.Published), orNone(c.Measured), string(c.Verdict), c.Why, orNone(c.Command),",
		new: "judgedOn(c), orNone(c.Measured), orNone(c.Published), string(c.Verdict), c.Why, orNone(c.Command),",
	},
}
