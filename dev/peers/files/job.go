package files

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// A job is one trial's load: n files of one size, or n lines of one size appended to each file in
// turn.
type job struct {
	Files int
	Lines int  // 0: each file is written once
	Size  int  // bytes of a file, or of a line
	Dirs  int  // in how many fresh directories a trial does it; 0 is one
	There bool // the files are there before the clock starts, with other bytes
	Gone  bool // as many were there just before, and were removed
}

// of is the part of the job that an arm does.
func (j job) of(a *arm) job {
	j.Lines /= max(1, a.Do.part)
	return j
}

func (j job) units() int   { return max(j.Files, j.Lines) }
func (j job) handles() int { return max(4, j.Files/10) }

// dirs is in how many a trial does it.
func (j job) dirs() int { return max(1, j.Dirs) }

// room is how much of the disk a trial may take.
func (j job) room() int64 {
	const block = 4096
	return int64(j.dirs()) * (int64(j.Files)*block + int64(j.Lines)*int64(j.Size))
}

// A site is the fresh directory of a trial, and its expected files.
type site struct {
	job
	dir   string
	paths []string
	data  []byte // each file's content, one after the other
	line  []byte // that is numbered
}

// newSite makes the directory.
func newSite(dir string, j job) (s *site, err error) {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return nil, err
	}
	s = &site{job: j, dir: dir, paths: make([]string, j.Files)}
	for i := range s.paths {
		s.paths[i] = filepath.Join(dir, fmt.Sprintf("%06d", i))
	}
	if j.Lines > 0 {
		s.line = append(bytes.Repeat([]byte("a line of a log "), j.Size/16+1)[:j.Size-1], '\n')
		return s, nil
	}
	s.data = make([]byte, 0, j.Files*j.Size)
	for i := range s.paths {
		s.data = fmt.Appendf(s.data, "%0*d\n", j.Size-1, i)
	}
	return s, s.old()
}

// content is the file's expected content.
func (s *site) content(file int) []byte { return s.data[file*s.Size : (file+1)*s.Size] }

const digits = 10

// number returns the line of that number, which the next call changes.
func (s *site) number(line int) []byte {
	for i := digits - 1; i >= 0; i-- {
		s.line[i] = byte('0' + line%10)
		line /= 10
	}
	return s.line
}

// old makes the files that are to be replaced, all of them on the disk.
func (s *site) old() error {
	if !s.There && !s.Gone {
		return nil
	}
	for _, path := range s.paths {
		if err := os.WriteFile(path, []byte("old\n"), 0o644); err != nil {
			return err
		}
	}
	command.SettleAll()
	for _, path := range s.paths {
		if err := s.gone(path); err != nil {
			return err
		}
	}
	return nil
}

// gone removes a file that is not to be there.
func (s *site) gone(path string) error {
	if !s.Gone {
		return nil
	}
	return os.Remove(path)
}

// verify reads all files and counts them.
func (s *site) verify() error {
	found, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	if len(found) != s.Files {
		return fmt.Errorf("%d files are in the directory, not %d", len(found), s.Files)
	}
	for i, path := range s.paths {
		if err := s.verifyFile(i, path); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) verifyFile(i int, path string) error {
	got, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if s.Lines > 0 {
		return s.verifyLines(i, got)
	}
	if !bytes.Equal(got, s.content(i)) {
		return fmt.Errorf("file %d holds %q, not %q", i, short(got), s.content(i))
	}
	return nil
}

func (s *site) verifyLines(file int, got []byte) error {
	for line := file; line < s.Lines; line += s.Files {
		if !bytes.HasPrefix(got, s.number(line)) {
			return fmt.Errorf("file %d holds %q where line %d is to be", file, short(got), line)
		}
		got = got[s.Size:]
	}
	if len(got) > 0 {
		return fmt.Errorf("file %d holds %d bytes too many", file, len(got))
	}
	return nil
}

func short(b []byte) []byte { return b[:min(len(b), 40)] }
