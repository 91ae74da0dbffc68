package provetest_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/provetest"
	"github.com/holdfast-go/holdfast/wal"
)

// A store of one file, which each save replaces.
func ExampleTest_oneFile() {
	save := func(dir, text string) error {
		f, err := os.Create(filepath.Join(dir, "state.tmp"))
		if err != nil {
			return err
		}
		if _, err = f.WriteString(text); err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(f.Name(), filepath.Join(dir, "state"))
		}
		if err != nil {
			return err
		}
		d, err := os.Open(dir) // without its sync a power cut may bring the old file back: subtest power says so
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	}
	_ = func(t *testing.T) { // func TestSave(t *testing.T)
		provetest.Test(t, provetest.Workload{
			Write: func(dir string, log *provetest.Log) error {
				for {
					text := time.Now().String()
					log.Begin("state", text)
					if err := save(dir, text); err != nil {
						return err
					}
					log.Ack("state", text)
				}
			},
			Read: func(dir string) (map[string]string, error) {
				text, err := os.ReadFile(filepath.Join(dir, "state"))
				if errors.Is(err, fs.ErrNotExist) {
					err = nil
				}
				return map[string]string{"state": string(text)}, err
			},
			Synced: true,
		})
	}
}

// A log. Each record is a key. Records that Open finds are durable by its promise: so Write notes them again.
func ExampleTest_log() {
	open := func(dir string) (*wal.Log, map[string]string, error) {
		l, _, err := wal.Open(dir, wal.Options{Policy: holdfast.Durable()})
		found := map[string]string{}
		if err != nil {
			return nil, nil, err
		}
		for r, err := range l.Records(l.First()) {
			if err != nil {
				return nil, nil, errors.Join(err, l.Close())
			}
			found[strconv.FormatUint(r.Index, 10)] = string(r.Data)
		}
		return l, found, nil
	}
	_ = func(t *testing.T) { // func TestLog(t *testing.T)
		provetest.Test(t, provetest.Workload{
			Write: func(dir string, log *provetest.Log) error {
				l, found, err := open(dir)
				for index, data := range found {
					log.Ack(index, data)
				}
				for err == nil {
					index, data := strconv.FormatUint(l.Last()+1, 10), time.Now().String()
					log.Begin(index, data)
					if _, err = l.Append([]byte(data)); err == nil {
						log.Ack(index, data)
					}
				}
				return err
			},
			Read: func(dir string) (map[string]string, error) {
				l, found, err := open(dir)
				if err != nil {
					return nil, err
				}
				return found, l.Close()
			},
			Synced: true, // the log's policy syncs each Append
		})
	}
}

// A key-value store: three functions are enough.
func ExampleStore() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		provetest.Test(t, provetest.Store(OpenDB, (*DB).Put, (*DB).Get))
	}
}

// A DB stands for your store.
type DB struct{ dir string }

func OpenDB(dir string) (*DB, error) { return &DB{dir}, nil }

func (db *DB) Put(key, value string) error {
	return os.WriteFile(filepath.Join(db.dir, key), []byte(value), 0o666) // which loses: it syncs nothing
}

func (db *DB) Get(key string) (string, error) {
	value, err := os.ReadFile(filepath.Join(db.dir, key))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(value), err
}

// A database by database/sql: here one of SQLite, by the driver that the test imports.
func ExampleStore_database() {
	open := func(dir string) (*sql.DB, error) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
		if err == nil {
			db.SetMaxOpenConns(1)
			_, err = db.Exec(`create table if not exists kept (key text primary key, value text)`)
		}
		return db, err
	}
	put := func(db *sql.DB, key, value string) error {
		_, err := db.Exec(`insert into kept values (?, ?) on conflict (key) do update set value = excluded.value`, key, value)
		return err
	}
	get := func(db *sql.DB, key string) (value string, err error) {
		err = db.QueryRow(`select value from kept where key = ?`, key).Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return value, err
	}
	_ = func(t *testing.T) { // func TestDatabase(t *testing.T)
		provetest.Test(t, provetest.Store(open, put, get))
	}
}

// TestStoreOfThreeFunctions runs the example's store, which loses.
func TestStoreOfThreeFunctions(t *testing.T) {
	w := provetest.Store(OpenDB, (*DB).Put, (*DB).Get)
	w.Time = 300 * time.Millisecond
	rule, words := provetest.Find(t, w, "power")
	if rule != "lost" && rule != "invented" || !strings.Contains(words, "no sync had covered") {
		t.Errorf("%q: %s", rule, words)
	}
	if _, kept, _ := strings.Cut(words, "its files are in "); kept != "" && os.RemoveAll(kept) != nil {
		t.Errorf("%s can't be removed", kept)
	}
}
