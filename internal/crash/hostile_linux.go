package crash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
)

// An attack is other users' action while a workload replaces files. At a call they exchange the
// directory for a link to another one, or they try to read.
type attack struct {
	at      int  // the call's number, among all
	back    bool // the link is there for this call alone
	readers *readable
}

func (a attack) String() string {
	switch {
	case a.readers != nil:
		return "old files with " + a.readers.name
	case a.back:
		return fmt.Sprintf("during call %d the directory was a link to another one", a.at)
	}
	return fmt.Sprintf("from call %d on the directory was a link to another one", a.at)
}

// A readable is who may read the old files.
type readable struct {
	name   string
	mode   uint32
	group  int
	list   []byte // of the files, as the kernel takes it
	always []byte // of the directory, for new files
}

// entry is one of an access control list: tag, permissions and user or group, see acl(5). Package binary
// reads exported fields.
type entry struct {
	Tag, Permits uint16
	ID           uint32
}

// The tags of linux/posix_acl.h.
const (
	listOwner, listUser, listGroup, listNamedGroup, listMask, listOther = 1, 2, 4, 8, 16, 32
)

const listOf = "system.posix_acl_access"

// aList is a list as the kernel takes it: linux/posix_acl_xattr.h.
func aList(entries ...entry) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range entries {
		b, _ = binary.Append(b, binary.LittleEndian, e)
	}
	return b
}

// readables are the old files of attacks. Only root can give them to another group.
func readables() []readable {
	const nobody = math.MaxUint32 // the ID of an entry that names none
	owner, other := entry{listOwner, 6, nobody}, entry{listOther, 0, nobody}
	all := []readable{
		{name: "mode 0600", mode: 0o600, group: -1},
		{name: "a list for one user", mode: 0o600, group: -1, list: aList(owner, entry{listUser, 4, 1001}, entry{listGroup, 0, nobody}, entry{listMask, 4, nobody}, other)},
		{name: "mode 0640 in a directory with a list for new files", mode: 0o640, group: -1,
			always: aList(owner, entry{listUser, 4, 1001}, entry{listGroup, 4, nobody}, entry{listMask, 4, nobody}, other)},
	}
	if os.Geteuid() == 0 {
		all = append(all, readable{name: "another group, mode 0640", mode: 0o640, group: 2000},
			readable{name: "another group that may not read", mode: 0o604, group: 2000},
			readable{name: "another group's list, whose mask is not the group's right", mode: 0o600, group: 2000,
				list: aList(owner, entry{listUser, 6, 1001}, entry{listGroup, 0, nobody}, entry{listMask, 6, nobody}, other)})
	}
	return all
}

// give makes the files of targets old ones, of version 1, or with one record of each stream.
func (r *readable) give(dir string, targets []Target) error {
	paths, ids := byPath(targets)
	for _, p := range paths {
		name, data := filepath.Join(dir, p), []byte(nil)
		for _, id := range ids[p] {
			if targets[id].Object {
				data = Record{ID: id, N: 1, Size: 700}.Append(data)
			} else {
				data = append(Record{ID: id, Size: 50}.Append(data), '\n')
			}
		}
		err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, data, 0o600),
			os.Chown(name, -1, r.group), os.Chmod(name, fs.FileMode(r.mode)))
		if r.list != nil {
			err = errors.Join(err, unix.Setxattr(name, listOf, r.list, 0))
		}
		if err != nil {
			return err
		}
	}
	if r.always == nil {
		return nil
	}
	return unix.Setxattr(filepath.Dir(filepath.Join(dir, targets[0].Path)), "system.posix_acl_default", r.always, 0)
}

// otherUsers are users that are no file's owner, each with a group.
var otherUsers = [][2]uint32{{1001, 1001}, {1002, 2000}, {1003, 0}, {1004, 3000}}

// mayRead returns which of the other users may read a file.
func (*attackedPlace) mayRead(name string) (may []bool, err error) {
	var is unix.Stat_t
	if err := unix.Lstat(name, &is); err != nil {
		return nil, err
	}
	var buf [1024]byte
	n, err := unix.Lgetxattr(name, listOf, buf[:])
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) {
		n, err = 0, nil
	}
	if err != nil {
		return nil, err
	}
	mode := uint16(is.Mode)
	entries := []entry{{Tag: listGroup, Permits: mode >> 3 & 7}, {Tag: listMask, Permits: 7}, {Tag: listOther, Permits: mode & 7}}
	if n > 4 {
		entries = make([]entry, (n-4)/8)
		if _, err := binary.Decode(buf[4:n], binary.LittleEndian, entries); err != nil {
			return nil, err
		}
	}
	for _, who := range otherUsers {
		may = append(may, reads(entries, who[0], who[1], is.Gid))
	}
	return may, nil
}

// reads reports what acl(5) says under "access check algorithm" of a user that is not the owner.
func reads(entries []entry, user, group, owning uint32) bool {
	mask, other, named, inGroup, byGroup := uint16(7), false, false, false, false
	for _, e := range entries {
		if e.Tag == listMask {
			mask = e.Permits
		}
	}
	for _, e := range entries {
		switch {
		case e.Tag == listUser && e.ID == user:
			named = true
			byGroup = e.Permits&mask&4 != 0
		case !named && (e.Tag == listGroup && owning == group || e.Tag == listNamedGroup && e.ID == group):
			inGroup = true
			byGroup = byGroup || e.Permits&mask&4 != 0
		case e.Tag == listOther:
			other = e.Permits&4 != 0
		}
	}
	if named || inGroup {
		return byGroup
	}
	return other
}

// byHostile makes the verdict of level hostile: a run counts the calls, then each of some attacks has a
// run of its own.
func (v *Verdict) byHostile(ctx context.Context, w *Workload, o Options, most time.Duration) error {
	end := time.Now().Add(most)
	r := rand.New(rand.NewPCG(v.Seed, 6))
	calls, err := v.attacked(ctx, w, o, r.Uint64(), attack{})
	if err != nil || v.Failure != nil {
		return err
	}
	var all, reading []attack
	places := []int{4, 5, 6, 7, 8, 9, 10, 11, 1 + r.IntN(calls), 1 + r.IntN(calls), 1 + r.IntN(calls), calls / 2}
	if w.Survey == nil {
		for _, readers := range readables() {
			reading = append(reading, attack{readers: &readers})
		}
	} else { // it replaces nothing, and has more than one way
		for at := range calls {
			places = append(places, at+1)
		}
	}
	for _, at := range places {
		all = append(all, attack{at: max(1, at)}, attack{at: max(1, at), back: true})
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	r.Shuffle(len(reading), func(i, j int) { reading[i], reading[j] = reading[j], reading[i] })
	for n, a := range reading { // by turns, so that both kinds are met in a short time
		all = slices.Insert(all, 2*n, a)
	}
	least := max(leastFaults, o.Least)
	if w.IsLiar() {
		least = len(all) // a liar is caught by the first that meets it
	}
	return inject(ctx, v, all, least, end, func(a attack, seed uint64) error {
		_, err := v.attacked(ctx, w, o, seed, a)
		return err
	})
}

// An attackedPlace is where a workload runs under an attack.
type attackedPlace struct {
	attack
	dir          string // of the workload
	place        string // where its files are: what is exchanged
	victim, link string // the other directory, and the link to it
	targets      []Target
	read         func(dir string) (*Survivors, error) // the Workload's Survey
	allowed      []bool                               // which of the other users may read the files; nil: all
	exchanged    bool
	violation    *Violation // the first
}

// prepare makes the directories, and the old files if the attack is by readers.
func (p *attackedPlace) prepare() error {
	err := errors.Join(os.MkdirAll(p.place, 0o777), os.Mkdir(p.victim, 0o777), os.Symlink(p.victim, p.link))
	if p.read != nil { // whose files are for nobody else
		p.allowed = make([]bool, len(otherUsers))
	}
	if err != nil || p.readers == nil {
		return err
	}
	if err := p.readers.give(p.dir, p.targets); err != nil {
		return err
	}
	p.allowed, err = p.mayRead(filepath.Join(p.dir, p.targets[0].Path))
	return err
}

func (p *attackedPlace) violate(rule, words string) {
	if p.violation == nil {
		p.violation = &Violation{Rule: rule, Words: words}
	}
}

// see looks for files that others may read, and could not before.
func (p *attackedPlace) see() {
	for _, name := range []string{p.place, p.link} { // one of them is the other directory
		entries, err := os.ReadDir(name)
		for _, e := range entries {
			may, readErr := p.mayRead(filepath.Join(name, e.Name()))
			if errors.Is(readErr, fs.ErrNotExist) || !e.Type().IsRegular() {
				continue
			}
			err = errors.Join(err, readErr)
			for i, who := range otherUsers {
				if readErr == nil && may[i] && !p.allowed[i] {
					p.violate("readable", fmt.Sprintf("user %d of group %d may read %s, and must not", who[0], who[1], e.Name()))
				}
			}
		}
		if err != nil {
			p.violate("readable", err.Error())
		}
	}
}

// exchange exchanges the directory and the link.
func (p *attackedPlace) exchange() {
	p.exchanged = !p.exchanged
	if err := unix.Renameat2(unix.AT_FDCWD, p.place, unix.AT_FDCWD, p.link, unix.RENAME_EXCHANGE); err != nil {
		p.violate("attack", err.Error())
	}
}

// meet is called before each call of the workload.
func (p *attackedPlace) meet(c *syscallfault.Call) {
	if p.allowed != nil {
		p.see()
	}
	if p.readers == nil && (c.Serial == p.at || p.back && p.exchanged) {
		p.exchange()
	}
}

// survey ends the attack, and finds what is in both directories.
func (p *attackedPlace) survey() (*Survivors, error) {
	if p.exchanged {
		p.exchange()
	}
	if p.allowed != nil {
		p.see()
	}
	there := slices.Clone(p.targets) // the same files in the victim
	for i := range there {
		there[i].Path = path.Base(there[i].Path)
	}
	look := func(dir, place string, targets []Target) (*Survivors, error) {
		if p.read != nil {
			return p.read(place)
		}
		return Survey(dir, targets)
	}
	found, err := look(p.dir, p.place, p.targets)
	if err != nil {
		return nil, err
	}
	other, err := look(p.victim, p.victim, there)
	if err != nil {
		return nil, err
	}
	for i := range found.N {
		found.N[i] = max(found.N[i], other.N[i])
		found.Half[i] = found.Half[i] || other.Half[i]
		found.Disorder[i] = found.Disorder[i] || other.Disorder[i]
	}
	found.Temporaries += other.Temporaries
	if log := p.targets[0]; log.Gather != nil { // a record is in either
		data, err := log.read(p.place, p.victim)
		if err != nil {
			return nil, err
		}
		_, ids := byPath(p.targets)
		found.Survey(p.targets, ids[log.Path], data)
	}
	return found, nil
}

// attacked runs a workload under an attack, and returns how many calls it made. A call must finish its
// work in the directory where it began, whatever the directory's name has become. So both directories
// have whole files and no temporary, and each acknowledged version is in one of them.
func (v *Verdict) attacked(ctx context.Context, w *Workload, o Options, seed uint64, a attack) (calls int, err error) {
	dir, remove, err := o.Directory()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	top := filepath.Dir(dir)
	targets := w.Targets(v.Policy)
	p := attackedPlace{attack: a, dir: dir, place: filepath.Join(dir, path.Dir(targets[0].Path)),
		victim: filepath.Join(top, "victim"), link: filepath.Join(top, "link"), targets: targets, read: w.Survey}
	if err := p.prepare(); errors.Is(err, unix.EOPNOTSUPP) {
		return 0, nil // no lists here
	} else if err != nil {
		return 0, err
	}
	shared, err := NewNotes()
	if err != nil {
		return 0, err
	}
	shared.End(faultNotes)
	cmd := o.Child(ctx, w.Name, v.Policy.String(), dir, strconv.FormatUint(seed, 10), "0")
	shared.Give(cmd)
	f, err := underFault(ctx, cmd, top, syscallfault.Kinds, nil, p.meet)
	c := NewChecker(targets, v.Loss)
	if a.readers != nil && w.Survey == nil {
		before := NewSurvivors(len(targets))
		for i := range before.N {
			before.N[i] = 1
		}
		c.Inherit(before)
	}
	for _, n := range shared.All() {
		c.Note(n)
	}
	if err = errors.Join(err, shared.Close()); err != nil {
		return 0, err
	}
	found, err := p.survey()
	if err != nil {
		return 0, err
	}
	judged := c.Judge(Process, found, time.Now().UnixNano(), -1)
	violation := p.violation
	switch {
	case violation != nil:
	case judged != nil:
		violation = judged
	case f.hung:
		violation = f.judge(nil, dir)
	case a.at == 0 && f.exit != nil:
		violation = &Violation{Rule: "again", Words: fmt.Sprintf("it failed: %v: %s", f.exit, f.said)}
	case found.Temporaries > 0:
		violation = &Violation{Rule: "temporaries", Words: fmt.Sprintf("%d temporary files are left; it said %q", found.Temporaries, f.said)}
	}
	v.Tally.Add(c.Tally)
	if violation != nil && v.Failure == nil {
		v.Failure = &Failure{Violation: violation, State: State{Crash: Process}, Words: fmt.Sprintf("%v: %s", a, violation.Words), Kill: 1}
	}
	for _, n := range f.counts {
		calls += n
	}
	return calls, nil
}
