package fault_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/fault"
)

// A script makes calls of a disk as bytes tell it, and keeps its own account, by
// another way than the disk's, of what a power cut may leave of them.
type script struct {
	t       *testing.T
	d       *fault.Disk
	program []byte
	folders map[string]*scriptFolder
	files   int
}

// A scriptFile is only ever appended to.
type scriptFile struct {
	bytes  []byte
	synced int
	lost   map[int]bool // the bytes that a failed sync may have lost
}

// A scriptFolder has the files that each name may show after a power cut: nil
// for none, and the newest last.
type scriptFolder struct {
	fd     int
	parent string
	there  bool // no power cut takes it away, if none takes its parent
	gone   bool // a failed sync may have lost its name
	names  map[string][]*scriptFile
	lost   map[string]bool // the names of which a failed sync may have lost the newest
}

func (s *script) next(n int) int {
	if len(s.program) == 0 {
		return 0
	}
	x := s.program[0]
	s.program = s.program[1:]
	return int(x) % n
}

var scriptFolders = []string{"/", "/m", "/a", "/a/b", "/m/c"}

// folder returns one of the folders, which it makes if it can.
func (s *script) folder() (string, *scriptFolder) {
	p := scriptFolders[s.next(len(scriptFolders))]
	f := s.folders[p]
	if f == nil {
		if s.d.Mkdir(name(p), 0o777) != nil {
			return "/", s.folders["/"]
		}
		f = &scriptFolder{fd: openFolder(s.t, s.d, p), parent: path.Dir(p), names: map[string][]*scriptFile{}, lost: map[string]bool{}}
		s.folders[p] = f
	}
	return p, f
}

func (f *scriptFolder) set(base string, file *scriptFile) {
	if len(f.names[base]) == 0 {
		f.names[base] = []*scriptFile{nil}
	}
	f.names[base] = append(f.names[base], file)
	delete(f.lost, base)
}

func (f *scriptFolder) now(base string) *scriptFile {
	if all := f.names[base]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// step makes one call.
func (s *script) step() {
	where, f := s.folder()
	base := []string{"x", "y"}[s.next(2)]
	p := path.Join(where, base)
	s.d.Mend()
	failing := s.next(4) == 0
	if failing {
		for _, op := range []fault.DiskOp{fault.DiskSync, fault.DiskDatasync, fault.DiskSyncAll} {
			s.d.Add(fault.DiskFault{Op: op, Err: syscall.EIO})
		}
	}
	switch s.next(7) {
	case 0, 1:
		s.write(f, base, p)
	case 2:
		s.rename(f, p, base, "z")
	case 3:
		if f.now(base) != nil && s.d.Remove(f.fd, name(base)) == nil {
			f.set(base, nil)
		}
	case 4:
		s.syncFile(f.now(base), f.fd, base)
	case 5:
		s.namesSynced(where, s.d.Sync(f.fd))
	case 6:
		s.syncAll(where, f)
	}
}

func (s *script) write(f *scriptFolder, base, p string) {
	fd := openFile(s.t, s.d, f.fd, base, appending)
	defer s.d.Close(fd)
	if f.now(base) == nil {
		f.set(base, &scriptFile{lost: map[int]bool{}})
	}
	file := f.now(base)
	s.files++
	data := fmt.Appendf(nil, "%s %d %s;", p, s.files, "aaaaaaaaaaaa"[:s.next(12)])
	put(s.t, s.d, fd, string(data))
	file.bytes = append(file.bytes, data...)
}

func (s *script) rename(f *scriptFolder, p, from, to string) {
	file := f.now(from)
	if file == nil {
		return
	}
	must(s.t, s.d.Rename(f.fd, name(from), name(to)))
	f.set(from, nil)
	f.set(to, file)
}

func (s *script) syncFile(file *scriptFile, folder int, base string) {
	if file == nil {
		return
	}
	fd := openFile(s.t, s.d, folder, base, appending)
	defer s.d.Close(fd)
	if s.next(2) == 0 {
		file.wasSynced(s.d.Sync(fd))
	} else {
		file.wasSynced(s.d.Datasync(fd))
	}
}

func (file *scriptFile) wasSynced(err error) {
	if err == nil {
		file.synced = len(file.bytes)
		return
	}
	for i := file.synced; i < len(file.bytes); i++ {
		file.lost[i] = true
	}
}

// namesSynced notes that what a folder shows now is all that it may show, but for what a
// failed sync has lost.
func (s *script) namesSynced(where string, err error) {
	f := s.folders[where]
	for base, may := range f.names {
		if err != nil && len(may) > 1 {
			f.lost[base] = true
		}
		if !f.lost[base] {
			f.names[base] = []*scriptFile{f.now(base)}
		}
	}
	for p, inside := range s.folders {
		if path.Dir(p) == where {
			inside.gone = inside.gone || err != nil && !inside.there
			inside.there = !inside.gone
		}
	}
}

func (s *script) syncAll(where string, f *scriptFolder) {
	err := s.d.SyncAll(f.fd)
	onMount := func(p string) bool { return len(p) > 1 && p[:2] == "/m" }
	for p, other := range s.folders {
		if onMount(p) != onMount(where) {
			continue
		}
		for _, all := range other.names {
			for _, file := range all {
				if file != nil {
					file.wasSynced(err)
				}
			}
		}
		s.namesSynced(p, err)
	}
}

// judge holds an image against the account.
func (s *script) judge(m *fault.Image) {
	s.t.Helper()
	for p, f := range s.folders {
		if !m.Folders[p] {
			if f.there && m.Folders[f.parent] {
				s.t.Errorf("the folder %s is lost", p)
			}
			continue
		}
		for base, may := range f.names {
			data, there := m.File(path.Join(p, base))
			ok := false
			for _, file := range may {
				ok = ok || file == nil && !there || file != nil && there && file.mayBe(data)
			}
			if !ok {
				s.t.Errorf("%s/%s is %q, %v: none of the %d that it may be", p, base, data, there, len(may))
			}
		}
	}
}

// judgeKernel holds what a process crash leaves against the account.
func (s *script) judgeKernel(m *fault.Image) {
	s.t.Helper()
	for p, f := range s.folders {
		for base := range f.names {
			data, there := m.File(path.Join(p, base))
			if file := f.now(base); there != (file != nil) || there && string(data) != string(file.bytes) {
				s.t.Errorf("a process crash leaves %q of %s/%s", data, p, base)
			}
		}
	}
}

// mayBe reports whether a power cut may leave this of the file.
func (file *scriptFile) mayBe(data []byte) bool {
	if len(data) < file.synced || len(data) > len(file.bytes) {
		return false
	}
	for i, b := range data {
		if b != file.bytes[i] && (b != 0 || i < file.synced && !file.lost[i]) {
			return false
		}
	}
	return true
}

// FuzzPowerCutKeepsWhatWasSynced runs scripts, and cuts the power after every call.
func FuzzPowerCutKeepsWhatWasSynced(f *testing.F) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		program := make([]byte, 150)
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		d := fault.NewDisk()
		d.SetSector(8)
		must(t, d.Mount("/m"))
		s := &script{t: t, d: d, program: program[:min(len(program), 150)], folders: map[string]*scriptFolder{}}
		for _, p := range []string{"/", "/m"} {
			s.folders[p] = &scriptFolder{fd: openFolder(t, d, p), parent: "/", there: true, names: map[string][]*scriptFile{}, lost: map[string]bool{}}
		}
		for seed := uint64(0); len(s.program) > 0 && !t.Failed(); seed++ {
			s.step()
			for i := range uint64(2) {
				s.judge(d.PowerCut(rand.New(rand.NewPCG(seed, i))))
			}
			s.judgeKernel(d.ProcessCrash())
		}
	})
}
