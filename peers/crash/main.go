// Crash writes records to the store of another library, and prints "ack N" when that library says
// that record N is there. holdfast prove --cmd crashes it; with -read it prints the records.
//
//	crash [-sync=false] [-read] bbolt|pebble|badger [directory]
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/dgraph-io/badger/v4"
	"go.etcd.io/bbolt"
)

// A store is what the program needs of one.
type store struct {
	put  func(n uint64) error
	each func(func(n uint64)) error
	io.Closer
}

// stores open a store in a directory, which syncs each record or leaves that to the kernel.
var stores = map[string]func(dir string, sync bool) (*store, error){
	"bbolt": func(dir string, sync bool) (*store, error) {
		db, err := bbolt.Open(filepath.Join(dir, "db"), 0o666, &bbolt.Options{NoSync: !sync})
		if err != nil {
			return nil, err
		}
		bucket := []byte("records")
		return &store{
			put: func(n uint64) error {
				return db.Update(func(tx *bbolt.Tx) error {
					b, err := tx.CreateBucketIfNotExists(bucket)
					if err != nil {
						return err
					}
					return b.Put(key(n), []byte("record"))
				})
			},
			each: func(fn func(uint64)) error {
				return db.View(func(tx *bbolt.Tx) error {
					b := tx.Bucket(bucket)
					if b == nil {
						return nil
					}
					return b.ForEach(func(k, _ []byte) error { fn(binary.BigEndian.Uint64(k)); return nil })
				})
			},
			Closer: db,
		}, nil
	},
	"pebble": func(dir string, sync bool) (*store, error) {
		db, err := pebble.Open(filepath.Join(dir, "db"), &pebble.Options{Logger: quiet{}})
		if err != nil {
			return nil, err
		}
		return &store{
			put: func(n uint64) error { return db.Set(key(n), []byte("record"), &pebble.WriteOptions{Sync: sync}) },
			each: func(fn func(uint64)) error {
				i, err := db.NewIter(nil)
				if err != nil {
					return err
				}
				for ok := i.First(); ok; ok = i.Next() {
					fn(binary.BigEndian.Uint64(i.Key()))
				}
				return errors.Join(i.Error(), i.Close())
			},
			Closer: db,
		}, nil
	},
	"badger": func(dir string, sync bool) (*store, error) {
		o := badger.DefaultOptions(filepath.Join(dir, "db")).WithSyncWrites(sync).WithLogger(nil).
			WithMemTableSize(1 << 20).WithValueLogFileSize(1 << 20).WithBlockCacheSize(1 << 20).WithValueThreshold(1 << 10)
		db, err := badger.Open(o)
		if err != nil {
			return nil, err
		}
		return &store{
			put: func(n uint64) error {
				return db.Update(func(tx *badger.Txn) error { return tx.Set(key(n), []byte("record")) })
			},
			each: func(fn func(uint64)) error {
				return db.View(func(tx *badger.Txn) error {
					i := tx.NewIterator(badger.DefaultIteratorOptions)
					defer i.Close()
					for i.Rewind(); i.Valid(); i.Next() {
						fn(binary.BigEndian.Uint64(i.Item().Key()))
					}
					return nil
				})
			},
			Closer: db,
		}, nil
	},
}

// quiet is a logger for pebble, which speaks of each table.
type quiet struct{}

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (quiet) Fatalf(format string, a ...any) { fmt.Fprintf(os.Stderr, format+"\n", a...); os.Exit(1) }

func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("crash", flag.ContinueOnError)
	sync := flags.Bool("sync", true, "sync each record")
	read := flags.Bool("read", false, "print the records that are there")
	if err := flags.Parse(args); err != nil {
		return err
	}
	open := stores[flags.Arg(0)]
	if open == nil || flags.NArg() > 2 {
		return fmt.Errorf("%q is no store; use bbolt, pebble or badger", flags.Arg(0))
	}
	dir := "."
	if flags.NArg() == 2 {
		dir = flags.Arg(1)
	}
	s, err := open(dir, *sync)
	if err != nil {
		return err
	}
	last := uint64(0)
	err = s.each(func(n uint64) {
		if last = n; *read {
			fmt.Fprintln(out, n)
		}
	})
	for !*read && err == nil {
		last++
		if err = s.put(last); err == nil {
			_, err = fmt.Fprintf(out, "ack %d\n", last)
		}
	}
	return errors.Join(err, s.Close())
}
