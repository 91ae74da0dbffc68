package records

import (
	"database/sql"
	"iter"
	"path/filepath"
	"time"

	"github.com/dgraph-io/badger/v4"
	"go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

var boltBucket = []byte("log")

func openBolt(dir string, w work) (*sink, error) {
	db, err := bbolt.Open(logPath(dir), 0o666, nil)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(boltBucket)
		return err
	})
	if err != nil {
		return nil, err
	}
	db.MaxBatchDelay = time.Millisecond
	commit := db.Batch
	if w.goroutines == 1 {
		commit = db.Update
	}
	var keys counter
	return each(func(p []byte) error {
		key := keys.key()
		return commit(func(tx *bbolt.Tx) error { return tx.Bucket(boltBucket).Put(key, p) })
	}, db.Close), nil
}

func boltRecords(dir string, _ work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		db, err := bbolt.Open(logPath(dir), 0o666, &bbolt.Options{ReadOnly: true})
		if err != nil {
			yield(nil, err)
			return
		}
		defer db.Close()
		err = db.View(func(tx *bbolt.Tx) error {
			c := tx.Bucket(boltBucket).Cursor()
			for k, v := c.First(); k != nil && yield(v, nil); k, v = c.Next() {
			}
			return nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

func badgerOptions(dir string) badger.Options {
	return badger.DefaultOptions(logDir(dir)).WithSyncWrites(true).WithLogger(nil)
}

func openBadger(dir string, _ work) (*sink, error) {
	db, err := badger.Open(badgerOptions(dir))
	if err != nil {
		return nil, err
	}
	var keys counter
	return each(func(p []byte) error {
		key := keys.key()
		return db.Update(func(tx *badger.Txn) error { return tx.Set(key, p) })
	}, db.Close), nil
}

func badgerRecords(dir string, _ work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		db, err := badger.Open(badgerOptions(dir))
		if err != nil {
			yield(nil, err)
			return
		}
		defer db.Close()
		err = db.View(func(tx *badger.Txn) error {
			it := tx.NewIterator(badger.DefaultIteratorOptions)
			defer it.Close()
			for it.Rewind(); it.Valid(); it.Next() {
				data, err := it.Item().ValueCopy(nil)
				if err != nil || !yield(data, nil) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

func openDatabase(dir string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "log.sqlite")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func openSQLite(dir string, _ work) (*sink, error) {
	db, err := openDatabase(dir)
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec("CREATE TABLE log (id INTEGER PRIMARY KEY, data BLOB)"); err != nil {
		return nil, err
	}
	insert, err := db.Prepare("INSERT INTO log VALUES (?, ?)")
	if err != nil {
		return nil, err
	}
	return each(numbered(func(index uint64, p []byte) error {
		_, err := insert.Exec(int64(index), p)
		return err
	}), db.Close), nil
}

func sqliteRecords(dir string, _ work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		db, err := openDatabase(dir)
		if err != nil {
			yield(nil, err)
			return
		}
		defer db.Close()
		rows, err := db.Query("SELECT data FROM log ORDER BY id")
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var data []byte
			err := rows.Scan(&data)
			if !yield(data, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}
