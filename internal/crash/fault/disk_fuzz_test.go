package fault_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// A script is bytes that choose the calls of a disk. It keeps its own account of the states that a
// power cut may leave, by another method than the disk's.
type script struct {
	t           *testing.T
	d           *fault.Disk
	program     []byte
	directories []*scriptDirectory // the root is the first
	files       []*scriptFile
	records     int
	fails       bool    // some syncs do
	lost        [2]bool // a failed sync may have lost names of the root's, or of the mount's, file system
}

// A scriptFile is only ever appended to.
type scriptFile struct {
	mount  bool
	bytes  []byte
	synced int
	lost   map[int]bool // the bytes that a failed sync may have lost
}

// A scriptDirectory has what each name may be after a power cut, the newest last.
type scriptDirectory struct {
	id    string // its marker's content: a file that is never touched again
	mount bool
	fd    int
	names map[string][]scriptName
	lost  map[string]bool // the names whose newest version a failed sync may have lost
	bound map[string]bool
	// took is the directories that a name went to from here or came from. A sync of one may take along
	// what happened in the others.
	took map[*scriptDirectory]bool

	// Where the directory may be after a power cut, the newest last.
	places []scriptPlace
	there  bool // a sync made its name durable once
	reused bool // since the last such sync, a place that it left was given to another
}

// A scriptName is a file, a directory, a symbolic link, or nothing.
type scriptName struct {
	file      *scriptFile
	directory *scriptDirectory
	link      string
}

type scriptPlace struct {
	in   *scriptDirectory
	base string
}

func (s *script) next(n int) int {
	if len(s.program) == 0 {
		return 0
	}
	x := s.program[0]
	s.program = s.program[1:]
	return int(x) % n
}

const (
	marker          = ".id"
	mostDirectories = 6
)

// addDirectory notes a new directory, and marks it, so that it is known wherever it is.
func (s *script) addDirectory(at scriptPlace, p string, mount bool) *scriptDirectory {
	f := &scriptDirectory{
		id: fmt.Sprint("directory ", len(s.directories)), mount: mount, fd: openDir(s.t, s.d, p),
		names: map[string][]scriptName{}, lost: map[string]bool{}, bound: map[string]bool{},
		took: map[*scriptDirectory]bool{}, places: []scriptPlace{at},
	}
	f.took[f] = true
	must(s.t, s.d.WriteFile(path.Join(p, marker), []byte(f.id), 0o644))
	s.directories = append(s.directories, f)
	return f
}

// path returns where the directory is now.
func (f *scriptDirectory) path() string {
	at := f.places[len(f.places)-1]
	if at.in == nil {
		return "/"
	}
	return path.Join(at.in.path(), at.base)
}

func (f *scriptDirectory) set(base string, to scriptName) {
	if len(f.names[base]) == 0 {
		f.names[base] = []scriptName{{}}
	}
	f.names[base] = append(f.names[base], to)
	delete(f.lost, base)
}

func (f *scriptDirectory) now(base string) scriptName {
	if all := f.names[base]; len(all) > 0 {
		return all[len(all)-1]
	}
	return scriptName{}
}

// set gives a name to something, or to nothing.
func (s *script) set(at scriptPlace, to scriptName) {
	at.in.set(at.base, to)
	for _, f := range s.directories {
		for _, left := range f.places {
			f.reused = f.reused || left == at && to != scriptName{} && to.directory != f
		}
	}
	if to.directory != nil {
		to.directory.places = append(to.directory.places, at)
	}
}

// find follows a path from a directory, and the symbolic link that its last element may be if
// follow says so. It returns false if the path leads nowhere, also not to a name that is free.
func (s *script) find(f *scriptDirectory, p string, follow bool, links int) (scriptPlace, bool) {
	if strings.HasPrefix(p, "/") {
		f = s.directories[0]
	}
	elements := strings.Split(strings.Trim(p, "/"), "/")
	for i, base := range elements {
		last := i == len(elements)-1
		is := f.now(base)
		if is.link != "" && (follow || !last) {
			if links == 0 {
				return scriptPlace{}, false
			}
			at, ok := s.find(f, is.link, true, links-1)
			if !ok || last {
				return at, ok
			}
			is = at.in.now(at.base)
		} else if last {
			return scriptPlace{f, base}, true
		}
		if f = is.directory; f == nil {
			return scriptPlace{}, false
		}
	}
	return scriptPlace{}, false
}

// mostScriptLinks is more links than there are names: a path that leads through as many has no end.
const mostScriptLinks = 30

// step makes one call.
func (s *script) step() {
	f := s.directories[s.next(len(s.directories))]
	p := []string{"x", "y", "z", "x/y", "y/x"}[s.next(5)]
	s.d.Mend()
	if s.next(4) == 0 && s.fails {
		for _, op := range []fault.DiskOp{fault.DiskSync, fault.DiskDatasync, fault.DiskSyncAll} {
			s.d.Add(fault.DiskFault{Op: op, Err: syscall.EIO})
		}
	}
	switch s.next(12) {
	case 0, 1:
		s.write(f, p)
	case 2:
		s.rename(f, p)
	case 3:
		moved := s.directories[s.next(len(s.directories))]
		for range 1 + s.next(3) {
			s.rename(s.directories[0], moved.path())
		}
	case 4:
		s.remove(f, p)
	case 5:
		s.syncFile(f, p)
	case 6, 7:
		s.namesSynced(f, s.d.Sync(f.fd))
	case 8:
		s.syncAll(f)
	case 9:
		s.mkdir(f, p)
	case 10:
		s.symlink(f, p)
	case 11:
		s.bind(f, p)
	}
}

func (s *script) write(f *scriptDirectory, p string) {
	at, ok := s.find(f, p, true, mostScriptLinks)
	if !ok || at.in.now(at.base).directory != nil {
		return
	}
	fd := openFile(s.t, s.d, f.fd, p, appending)
	defer s.d.Close(fd)
	file := at.in.now(at.base).file
	if file == nil {
		file = &scriptFile{mount: at.in.mount, lost: map[int]bool{}}
		s.files = append(s.files, file)
		s.set(at, scriptName{file: file})
	}
	s.records++
	data := fmt.Appendf(nil, "%s %d %s;", p, s.records, "aaaaaaaaaaaa"[:s.next(12)])
	put(s.t, s.d, fd, string(data))
	file.bytes = append(file.bytes, data...)
}

// rename moves a file, a link or a directory, to another directory too.
func (s *script) rename(f *scriptDirectory, p string) {
	to := s.directories[s.next(len(s.directories))]
	target := scriptPlace{to, []string{"x", "y", "z"}[s.next(3)]}
	source, ok := s.find(f, p, false, mostScriptLinks)
	err := s.d.Rename(f.fd, name(p), name(path.Join(to.path(), target.base)))
	if err != nil || !ok || source == target {
		if err == nil && !ok {
			s.t.Errorf("%s of %s was renamed, and is nothing", p, f.path())
		}
		return
	}
	s.notBound(source)
	s.notBound(target)
	is := source.in.now(source.base)
	s.set(source, scriptName{})
	s.set(target, is)
	s.join(source.in, to)
}

// join notes that two directories have changed together, and all that these have changed with.
func (s *script) join(a, b *scriptDirectory) {
	for x := range b.took {
		a.took[x] = true
	}
	for x := range a.took {
		x.took = a.took
	}
}

func (s *script) remove(f *scriptDirectory, p string) {
	at, ok := s.find(f, p, false, mostScriptLinks)
	if s.d.Remove(f.fd, name(p)) == nil && ok {
		s.notBound(at)
		s.set(at, scriptName{})
	}
}

// notBound fails if a call has changed a name at which a file is mounted.
func (s *script) notBound(at scriptPlace) {
	if at.in.bound[at.base] {
		s.t.Errorf("a call took the name %s of %s, which is mounted", at.base, at.in.id)
	}
}

func (s *script) mkdir(f *scriptDirectory, p string) {
	at, ok := s.find(f, p, false, mostScriptLinks)
	where := path.Join(f.path(), p)
	if len(s.directories) == mostDirectories || s.d.Mkdir(name(where), 0o777) != nil || !ok {
		return
	}
	made := s.addDirectory(at, where, at.in.mount)
	made.places = nil
	s.set(at, scriptName{directory: made})
}

var scriptTargets = []string{"y", "x", "/m", "/m/x", "/x", "/x/y", "/m/y/x"}

// symlink makes a link, which is on the disk at once, with all other names of its directory.
func (s *script) symlink(f *scriptDirectory, p string) {
	target := scriptTargets[s.next(len(scriptTargets))]
	at, ok := s.find(f, p, false, mostScriptLinks)
	if s.d.Symlink(target, path.Join(f.path(), p)) == nil && ok {
		s.set(at, scriptName{link: target})
		s.namesSynced(at.in, nil)
	}
}

// bind mounts a file at another name, also from another file system. Like a link, it is on
// the disk at once, with all other names of its directory.
func (s *script) bind(f *scriptDirectory, p string) {
	from := s.directories[s.next(len(s.directories))]
	old, found := s.find(from, []string{"x", "y", "z"}[s.next(3)], true, mostScriptLinks)
	at, ok := s.find(f, p, false, mostScriptLinks)
	if !found || !ok || s.d.Bind(path.Join(old.in.path(), old.base), path.Join(f.path(), p)) != nil {
		return
	}
	s.set(at, scriptName{file: old.in.now(old.base).file})
	s.namesSynced(at.in, nil)
	at.in.bound[at.base] = true
}

func (s *script) syncFile(f *scriptDirectory, p string) {
	at, ok := s.find(f, p, true, mostScriptLinks)
	if !ok || at.in.now(at.base).file == nil {
		return
	}
	fd := openFile(s.t, s.d, f.fd, p, appending)
	defer s.d.Close(fd)
	sync := s.d.Datasync
	if s.next(2) == 0 {
		sync = s.d.Sync
	}
	at.in.now(at.base).file.wasSynced(sync(fd))
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

// namesSynced notes that a directory may show only its present names, but for names that a failed
// sync has lost. This holds here and in the directories with which it has changed names.
func (s *script) namesSynced(f *scriptDirectory, err error) {
	if err != nil {
		s.lost[one(f.mount)] = true
		for other := range f.took {
			for base, may := range other.names {
				other.lost[base] = other.lost[base] || len(may) > 1
			}
		}
	}
	for base := range f.names {
		if f.lost[base] {
			continue
		}
		is := f.now(base)
		f.names[base] = []scriptName{is}
		if is.directory != nil {
			at := is.directory
			at.places, at.there, at.reused = []scriptPlace{{f, base}}, true, false
		}
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *script) syncAll(f *scriptDirectory) {
	err := s.d.SyncAll(f.fd)
	for _, file := range s.files {
		if file.mount == f.mount {
			file.wasSynced(err)
		}
	}
	for _, other := range s.directories {
		if other.mount == f.mount {
			s.namesSynced(other, err)
		}
	}
}

// A scriptJudge holds an image against the account.
type scriptJudge struct {
	*script
	image  *fault.Image
	seen   map[*scriptDirectory]int
	inside map[*scriptDirectory]bool // the directories that are judged at the moment
	may    func(f *scriptDirectory, base string) []scriptName
	holds  func(file *scriptFile, data []byte) bool
}

// judge holds what a power cut leaves against the account.
func (s *script) judge(m *fault.Image) {
	s.t.Helper()
	j := &scriptJudge{s, m, map[*scriptDirectory]int{}, map[*scriptDirectory]bool{},
		func(f *scriptDirectory, base string) []scriptName { return f.names[base] }, (*scriptFile).mayBe}
	j.directory("/", s.directories[0])
	for _, f := range s.directories {
		if s.lost[one(f.mount)] {
			continue // the lost change may be a move: then its two names tell different stories
		}
		if j.seen[f] > 1 {
			s.t.Errorf("%s has %d names", f.id, j.seen[f])
		}
		found := f.there && !f.reused
		for _, at := range f.places {
			found = found && (at.in == nil || j.seen[at.in] > 0)
		}
		if found && j.seen[f] == 0 {
			s.t.Errorf("%s was there, and was only moved, and is nowhere", f.id)
		}
	}
}

// judgeKernel holds what a process crash leaves against the account.
func (s *script) judgeKernel(m *fault.Image) {
	s.t.Helper()
	j := &scriptJudge{s, m, map[*scriptDirectory]int{}, map[*scriptDirectory]bool{},
		func(f *scriptDirectory, base string) []scriptName { return []scriptName{f.now(base)} },
		func(file *scriptFile, data []byte) bool { return string(data) == string(file.bytes) }}
	j.directory("/", s.directories[0])
	for _, f := range s.directories {
		if j.seen[f] != 1 {
			s.t.Errorf("a process crash leaves %d names of %s", j.seen[f], f.id)
		}
	}
}

// directory judges all that the image has in a directory.
func (j *scriptJudge) directory(p string, f *scriptDirectory) {
	j.t.Helper()
	j.seen[f]++
	j.inside[f] = true
	defer delete(j.inside, f)
	if data, _ := j.image.File(path.Join(p, marker)); string(data) != f.id {
		j.t.Errorf("%s is %q, not %s", p, data, f.id)
	}
	for base := range f.names {
		is, ok := j.match(path.Join(p, base), j.may(f, base))
		if !ok {
			j.t.Errorf("%s/%s is none of the %d that it may be", p, base, len(j.may(f, base)))
		} else if is.directory != nil && !j.inside[is.directory] {
			j.directory(path.Join(p, base), is.directory)
		}
	}
}

// match returns which of these a path is in the image.
func (j *scriptJudge) match(p string, may []scriptName) (scriptName, bool) {
	data, isFile := j.image.File(p)
	id, _ := j.image.File(path.Join(p, marker))
	link, isLink := j.image.Links[p]
	for _, is := range may {
		switch {
		case is.file != nil && isFile && j.holds(is.file, data),
			is.directory != nil && j.image.Dirs[p] && string(id) == is.directory.id,
			is.link != "" && isLink && is.link == link,
			(is == scriptName{} || j.inside[is.directory]) && !isFile && !isLink && !j.image.Dirs[p]:
			return is, true
		}
	}
	return scriptName{}, false
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

// FuzzPowerCutKeepsWhatWasSynced runs scripts, and cuts the power after every call. They have
// files, links, single files that are mounted and directories that move, on two file systems.
func FuzzPowerCutKeepsWhatWasSynced(f *testing.F) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		program := make([]byte, 250)
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		d := fault.NewDisk()
		d.SetSector(8)
		must(t, d.Mount("/m"))
		s := &script{t: t, d: d, program: program[:min(len(program), 250)]}
		root := s.addDirectory(scriptPlace{}, "/", false)
		mount := s.addDirectory(scriptPlace{root, "m"}, "/m", true)
		root.names["m"] = []scriptName{{directory: mount}}
		root.there, mount.there = true, true
		s.fails = s.next(2) == 0
		for seed := uint64(0); len(s.program) > 0 && !t.Failed(); seed++ {
			s.step()
			for i := range uint64(2) {
				s.judge(d.PowerCut(rand.New(rand.NewPCG(seed, i))))
			}
			s.judgeKernel(d.ProcessCrash())
		}
	})
}
