package crash

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/dgraph-io/badger/v4"
	"github.com/tidwall/buntdb"
	"go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/holdfast-go/holdfast/internal/crash"
)

// A program is one setting of one peer. It is a database that open opens in the working
// directory, or a command for the shell and one that reads.
type program struct {
	name, setting string
	open          func() (*database, error)
	command, read string
	needs         string // a command that must be there
	slow          bool   // it starts so slowly that it is crashed for five times as long
	mapped        bool   // it writes through mapped memory
	costly        bool   // a run takes seconds, and level fault needs dozens: it is left out
	lost, may     []crash.Level
	documented    string // what its own page says of this setting
}

// A database stores the records 1, 2, 3 and so on.
type database struct {
	put func(n uint64) error
	// read calls do with each record that it finds, and returns the last.
	read func(do func(n uint64)) (last uint64, err error)
}

// programs are the peers to crash. SQLite takes the sync of a directory for done even if it has failed
// (unixSync in its os_unix.c, ticket 1657). So the level fault loses the whole database, if it
// meets this call.
var programs = []program{
	{name: "SQLite", setting: "WAL, synchronous=FULL", open: sqlite("WAL", "FULL"), may: []crash.Level{crash.Fault},
		documented: "the WAL is synced after each commit"},
	{name: "SQLite", setting: "WAL, synchronous=NORMAL", open: sqlite("WAL", "NORMAL"), lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Fault},
		documented: "a commit may roll back after a power loss"},
	{name: "SQLite", setting: "DELETE, synchronous=FULL", open: sqlite("DELETE", "FULL"), may: []crash.Level{crash.Fault, crash.PowerCut},
		documented: "only EXTRA syncs the directory after the journal's removal"},
	{name: "bbolt", setting: "default", open: bolt(false), may: levels,
		documented: "each commit is synced"},
	{name: "bbolt", setting: "NoSync", open: bolt(true), lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Kill, crash.Fault},
		documented: "a failure of the system may take or corrupt the database"},
	{name: "pebble", setting: "pebble.Sync", open: openPebble(pebble.Sync),
		documented: "a commit waits for the sync of the log"},
	{name: "pebble", setting: "pebble.NoSync", open: openPebble(pebble.NoSync), lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Kill, crash.Fault},
		documented: "the end of the process may take recent writes"},
	{name: "badger", setting: "SyncWrites=false, the default", open: openBadger(false), mapped: true, may: []crash.Level{crash.Kill},
		documented: "writes survive the end of the process"},
	{name: "badger", setting: "SyncWrites=true", open: openBadger(true), mapped: true, may: []crash.Level{crash.Kill},
		documented: "as SyncWrites says, as far as it was judged"},
	{name: "etcd wal", setting: "Save", open: openEtcd,
		documented: "Save syncs the entries"},
	{name: "tidwall/wal", setting: "default", open: openTidwall, may: []crash.Level{crash.Fault, crash.PowerCut},
		documented: "each Write is synced"},
	{name: "raft-wal", setting: "default", open: openRaftWAL,
		documented: "StoreLog syncs"},
	{name: "raft-boltdb", setting: "default", open: openRaftBolt, may: levels,
		documented: "as bbolt"},
	{name: "buntdb", setting: "SyncPolicy=Always", open: openBunt(buntdb.Always), may: []crash.Level{crash.Fault, crash.PowerCut},
		documented: "fsync after every write"},
	{name: "buntdb", setting: "SyncPolicy=EverySecond, the default", open: openBunt(buntdb.EverySecond), lost: []crash.Level{crash.PowerCut},
		documented: "a second may be lost"},
	{name: "goleveldb", setting: "Sync=true", open: openLevel(true), may: levels,
		documented: "each Put is synced"},
	{name: "goleveldb", setting: "Sync=false, the default", open: openLevel(false), lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Kill, crash.Fault},
		documented: "recent writes may be lost if the machine crashes"},
	{name: "diskv", setting: "WriteStream with sync", open: openDiskv(true), lost: []crash.Level{crash.PowerCut},
		documented: "it syncs the file"},
	{name: "diskv", setting: "Write, which does not sync", open: openDiskv(false), lost: []crash.Level{crash.PowerCut},
		documented: "only WriteStream can sync"},
	{name: "go-git", setting: "Commit", open: openGoGit, lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Kill, crash.Fault},
		documented: "it promises nothing"},
	{name: "natefinch/atomic", setting: "WriteFile", open: state(writeAtomic, os.ReadFile), lost: []crash.Level{crash.PowerCut},
		documented: "atomic; it says nothing of durable"},
	{name: "renameio", setting: "WriteFile", open: state(writeRenameio, os.ReadFile), lost: []crash.Level{crash.PowerCut},
		documented: "atomic, not durable"},
	{name: "moby/sys/atomicwriter", setting: "WriteFile", open: state(writeMoby, os.ReadFile), lost: []crash.Level{crash.PowerCut},
		documented: "atomic; it says nothing of durable"},
	{name: "syncthing", setting: "osutil.CreateAtomic", open: state(writeSyncthing, os.ReadFile), may: []crash.Level{crash.Fault},
		documented: "Close renames the file; it says nothing of durable"},
	{name: "Prometheus tsdb/wlog", setting: "Log", open: openWlog, lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Fault},
		documented: "a segment is synced when it is full, and at Close"},
	{name: "os.WriteFile", setting: "in place", open: state(writeInPlace, os.ReadFile), lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Kill, crash.Fault},
		documented: "it is not atomic"},
	{name: "lumberjack", setting: "Write", open: openLumberjack, lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Fault},
		documented: "it promises nothing of a power cut"},
	{name: "Python", setting: "write, os.replace", command: python(""), read: count, needs: "python3", lost: []crash.Level{crash.PowerCut},
		documented: "os.replace is atomic; it says nothing of durable"},
	{name: "Python", setting: "write, os.fsync, os.replace", command: python("os.fsync(t.fileno())"), read: count, needs: "python3", lost: []crash.Level{crash.PowerCut},
		documented: "a name needs a sync of its directory"},
	{name: "cp", setting: "cp t f", command: counter("echo $n >t && cp t f || exit"), read: count, lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Kill, crash.Fault},
		documented: "it promises nothing"},
	{name: "rsync", setting: "rsync -I t f", command: counter("echo $n >t && rsync -I t f || exit"), read: count, needs: "rsync", lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Fault},
		documented: "it promises nothing"},
	{name: "rsync", setting: "rsync -I --fsync t f", command: counter("echo $n >t && rsync -I --fsync t f || exit"), read: count, needs: "rsync", lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Fault},
		documented: "it syncs each written file; it says nothing of directories"},
	{name: "dd", setting: "oflag=append conv=fsync", command: appended(`printf "%07d\n" $n | dd of=log oflag=append conv=notrunc,fsync status=none || exit`), read: lines,
		documented: "it syncs before it ends"},
	{name: "sqlite3", setting: "the shell, default", command: shellSQL, read: readSQL, needs: "sqlite3", may: []crash.Level{crash.Fault, crash.PowerCut},
		documented: "as SQLite with DELETE and FULL"},
	{name: "redis", setting: "appendfsync always", command: redis("always"), read: readRedis("always"), needs: "redis-server", may: []crash.Level{crash.Fault},
		documented: "it syncs before it answers"},
	{name: "redis", setting: "appendfsync everysec, the default", command: redis("everysec"), read: readRedis("everysec"), needs: "redis-server", lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Fault},
		documented: "a second may be lost"},
	{name: "PostgreSQL", setting: "fsync=on, the default", command: postgres("on"), read: readPostgres("on"), needs: "initdb", slow: true,
		documented: "a commit is on the disk before it is reported"},
	{name: "PostgreSQL", setting: "fsync=off", command: postgres("off"), read: readPostgres("off"), needs: "initdb", slow: true, lost: []crash.Level{crash.PowerCut},
		documented: "a crash of the system may corrupt all data"},
	{name: "restic", setting: "backup to a local repository", command: backups, read: readBackups, needs: "restic", slow: true, costly: true,
		documented: "its local backend syncs each file, and its directory"},
	{name: "git commit", setting: "default", command: commits(""), read: log, needs: "git", lost: []crash.Level{crash.PowerCut},
		documented: "it risks losing recent work"},
	{name: "git commit", setting: "core.fsync=all", command: commits("-c core.fsync=all"), read: log, needs: "git", lost: []crash.Level{crash.PowerCut},
		documented: "files are synced, but not the directories of their names"},
	{name: "sh", setting: "echo >t; mv t f", command: counter("echo $n >t; mv t f"), read: count, lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Fault},
		documented: "rename(2) promises nothing of a power cut"},
	{name: "sh", setting: "echo >t && sync t && mv t f && sync .", command: counter("echo $n >t && sync t && mv t f && sync . || exit"), read: count,
		documented: "fsync(2) of the file, and of its directory"},
	{name: "sh", setting: "printf >>log", command: appended(`printf "%07d\n" $n >>log || exit`), read: lines, lost: []crash.Level{crash.PowerCut}, may: []crash.Level{crash.Fault}, // a torn line takes the next one along
		documented: "write(2) promises nothing of a power cut"},
	{name: "sh", setting: "fifty records in memory", lost: []crash.Level{crash.Kill, crash.Fault, crash.PowerCut},
		command: appended(`b="$b$n\n"; if [ $((n%50)) = 0 ]; then printf "$b" >>log; b=; fi`), read: lines,
		documented: "memory goes with the process"},
}

// counter is a script that keeps the last number in the file f, and count reads it.
func counter(step string) string {
	return "n=$(cat f 2>/dev/null || echo 0); while :; do n=$((n+1)); " + step + "; echo ack $n; done"
}

const count = "if [ -s f ]; then seq $(cat f); fi"

// appended is a script that keeps a line a record. A line of eight bytes lies in one page: a kill can tear no write of it.
func appended(step string) string {
	return "n=$(cat log 2>/dev/null | wc -l); while :; do n=$((n+1)); " + step + "; echo ack $n; done"
}

// lines prints the whole lines of log.
const lines = "touch log; while read -r n; do echo $n; done <log"

// python replaces the file f by a file with the next number; step stands between the write and the replacement.
func python(step string) string {
	return `exec python3 -c '
import os
n = int(open("f").read()) if os.path.exists("f") else 0
while True:
    n += 1
    with open("t", "w") as t:
        t.write("%d\n" % n)
        t.flush()
        ` + step + `
    os.replace("t", "f")
    print("ack", n, flush=True)
'`
}

const (
	readSQL  = `sqlite3 db 'CREATE TABLE IF NOT EXISTS log (n INTEGER PRIMARY KEY); SELECT n FROM log ORDER BY n'`
	shellSQL = `n=$(` + readSQL + ` | tail -n 1); while :; do n=$((n+1)); sqlite3 db "INSERT INTO log VALUES ($n)" || exit; echo ack $n; done`
)

// redisServer starts a server in the working directory and waits until it answers. The name of its directory is durable
// before: redis leaves that to the file system.
func redisServer(appendfsync string) string {
	return `mkdir -p appendonlydir && sync . && redis-server --port 0 --unixsocket s --dir . --save "" --appendonly yes --appendfsync ` + appendfsync + ` >&2 &
until redis-cli -s s ping >/dev/null 2>&1; do kill -0 $! || exit; sleep 0.02; done; `
}

func redis(appendfsync string) string {
	return redisServer(appendfsync) + `n=$(redis-cli -s s get n); while :; do n=$((n+1)); [ "$(redis-cli -s s set n $n)" = OK ] || exit; echo ack $n; done`
}

func readRedis(appendfsync string) string {
	return redisServer(appendfsync) + `n=$(redis-cli -s s get n); redis-cli -s s shutdown nosave; wait; if [ -n "$n" ]; then seq $n; fi`
}

// postgresServer makes a cluster of databases in d, once, starts its server, and goes on with a script. PostgreSQL refuses root, who is
// another user in a namespace of users; System V's memory of a killed server goes with a namespace of its own. What a killed
// server has left in postmaster.pid is removed: nobody else has the directory.
func postgresServer(fsync, then string) string {
	return `cat >run <<'END'
if [ ! -d d ]; then rm -rf t && initdb -D t -U postgres --no-sync --no-locale --wal-segsize=1 >/dev/null && sync && mv t d && sync . || exit; fi
rm -f d/postmaster.pid; chmod 700 d
postgres -D d -k . -c listen_addresses= -c fsync=` + fsync + ` >&2 & server=$!
sql() { psql -h "$PWD/d" -U postgres -d postgres -Atq -v ON_ERROR_STOP=1 "$@"; }
until sql -c 'create table if not exists log (n bigint primary key)' >/dev/null 2>&1; do kill -0 $server || exit; sleep 0.05; done
` + then + `
END
exec unshare --user --ipc --map-user=1000 --map-group=1000 sh run`
}

func postgres(fsync string) string {
	return postgresServer(fsync, `n=$(sql -c 'select coalesce(max(n), 0) from log') || exit
while :; do n=$((n+1)); echo "insert into log values ($n) returning 'ack '||n;"; done | sql`)
}

func readPostgres(fsync string) string {
	return postgresServer(fsync, `sql -c 'select n from log order by n' || exit; kill -INT $server; wait`)
}

// restic makes a repository, once, and goes on with a script; tags are the numbers of its snapshots. The names of the repository's directories
// are durable before: restic leaves them to the file system.
const restic = `export RESTIC_PASSWORD=p RESTIC_REPOSITORY=r HOME=/nonexistent
if [ ! -s ready ]; then rm -rf r && restic init --no-cache -q && find r -type d -exec sync {} + && echo yes >ready && sync ready . || exit; fi
tags() { restic snapshots --no-cache --no-lock --json | grep -o '"tags":\["[0-9]*"' | tr -dc '0-9\n' | sort -n; }
`

// backups makes a snapshot of a file a record.
const backups = restic + `n=$(tags | tail -n 1); mkdir -p s; while :; do n=$((n+1)); echo $n >s/f; restic backup --no-cache -q --tag $n s || exit; echo ack $n; done`

// readBackups prints the snapshots, if all of their files can be read.
const readBackups = restic + `restic check --no-cache --no-lock -q --read-data >&2 && tags`

// commits makes a commit a record. A lock that a killed git has left is removed, as its message says.
func commits(flags string) string {
	return `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org GIT_CONFIG_NOSYSTEM=1 HOME=/nonexistent
find . -name '*.lock' -delete; git init -q -b main . 2>/dev/null || exit
n=$(git rev-list --count HEAD 2>/dev/null || echo 0)
while :; do n=$((n+1)); echo $n >f; git ` + flags + ` add f && git ` + flags + ` commit -q -m $n >&2 || exit; echo ack $n; done`
}

// log prints the commits, if their files can be read.
const log = `if git rev-parse -q --verify HEAD >/dev/null 2>&1; then git fsck --no-dangling >/dev/null 2>&1 && git log --reverse --format=%s; fi`

func sqlite(journal, synchronous string) func() (*database, error) {
	return func() (*database, error) {
		db, err := sql.Open("sqlite", fmt.Sprintf("file:db?_pragma=journal_mode(%s)&_pragma=synchronous(%s)", journal, synchronous))
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		if _, err := db.Exec("CREATE TABLE IF NOT EXISTS log (n INTEGER PRIMARY KEY)"); err != nil {
			return nil, err
		}
		return &database{
			put: func(n uint64) error {
				_, err := db.Exec("INSERT INTO log VALUES (?)", int64(n))
				return err
			},
			read: func(do func(uint64)) (last uint64, err error) {
				rows, err := db.Query("SELECT n FROM log ORDER BY n")
				if err != nil {
					return 0, err
				}
				defer rows.Close()
				for rows.Next() {
					if err := rows.Scan(&last); err != nil {
						return 0, err
					}
					do(last)
				}
				return last, rows.Err()
			}}, nil
	}
}

func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func bolt(noSync bool) func() (*database, error) {
	return func() (*database, error) {
		bucket := []byte("log")
		db, err := bbolt.Open("db", 0o666, &bbolt.Options{NoSync: noSync})
		if err != nil {
			return nil, err
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists(bucket)
			return err
		})
		return &database{
			put: func(n uint64) error {
				return db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(key(n), key(n)) })
			},
			read: func(do func(uint64)) (last uint64, err error) {
				return last, db.View(func(tx *bbolt.Tx) error {
					return tx.Bucket(bucket).ForEach(func(k, _ []byte) error {
						last = binary.BigEndian.Uint64(k)
						do(last)
						return nil
					})
				})
			}}, err
	}
}

func openPebble(how *pebble.WriteOptions) func() (*database, error) {
	return func() (*database, error) {
		db, err := pebble.Open("db", &pebble.Options{Logger: quiet{}})
		if err != nil {
			return nil, err
		}
		return &database{
			put: func(n uint64) error { return db.Set(key(n), key(n), how) },
			read: func(do func(uint64)) (last uint64, err error) {
				it, err := db.NewIter(nil)
				if err != nil {
					return 0, err
				}
				for it.First(); it.Valid(); it.Next() {
					last = binary.BigEndian.Uint64(it.Key())
					do(last)
				}
				return last, it.Close()
			}}, nil
	}
}

// quiet says nothing but the cause of an end.
type quiet struct{}

func (quiet) Infof(string, ...any)              {}
func (quiet) Errorf(string, ...any)             {}
func (quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func openBadger(sync bool) func() (*database, error) {
	return func() (*database, error) {
		db, err := badger.Open(badger.DefaultOptions("db").WithSyncWrites(sync).WithLogger(nil))
		if err != nil {
			return nil, err
		}
		return &database{
			put: func(n uint64) error { return db.Update(func(tx *badger.Txn) error { return tx.Set(key(n), key(n)) }) },
			read: func(do func(uint64)) (last uint64, err error) {
				return last, db.View(func(tx *badger.Txn) error {
					it := tx.NewIterator(badger.DefaultIteratorOptions)
					defer it.Close()
					for it.Rewind(); it.Valid(); it.Next() {
						last = binary.BigEndian.Uint64(it.Item().Key())
						do(last)
					}
					return nil
				})
			}}, nil
	}
}
