//go:build go1.25 && unix

package files_test

import (
	"context"
	"github.com/holdfast-go/holdfast/files"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestAppendGivesANewFileTheSpecialBits(t *testing.T) {
	for _, special := range []fs.FileMode{fs.ModeSetgid, fs.ModeSticky, fs.ModeSetuid} {
		if special == fs.ModeSetuid && os.Geteuid() != 0 {
			continue // a write without CAP_FSETID clears it, see inode(7)
		}
		dir := t.TempDir()
		f, err := files.New(files.Options{Perm: 0o640 | special})
		if err != nil {
			t.Fatal(err)
		}
		whole, appended := filepath.Join(dir, "whole"), filepath.Join(dir, "appended")
		if _, err := f.WriteFile(context.Background(), whole, nil, files.Create); err != nil {
			t.Fatal(err)
		}
		if err := f.Append(context.Background(), appended, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{whole, appended} {
			is, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if is.Mode() != 0o640|special {
				t.Errorf("%s made under Perm %v has %v", filepath.Base(path), 0o640|special, is.Mode())
			}
		}
	}
}
