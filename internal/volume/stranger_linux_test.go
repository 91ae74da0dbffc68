//go:build go1.25

package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/mountinfo"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// fewRounds is how often root is led elsewhere in each way but while it waits.
const fewRounds = 20

// deadText is the marker of a process that is dead and may share its lock with one that
// it was about to start.
const deadText = `{"kind":"ext4","process":4194300,"started":1,"boot":"x"}`

// plantVictim makes a directory of root with a volume's files, and more.
func plantVictim(t *testing.T) string {
	t.Helper()
	victim := plant(t, t.TempDir(), "victim", map[string]string{markerName: deadText, imageName: "mine", "notes": "mine"})
	if err := os.Mkdir(mountIn(victim), 0o700); err != nil {
		t.Fatal(err)
	}
	return victim
}

// below lists all that is below a directory, without following a link.
func below(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		all = append(all, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// A ruse is a stranger's bait for root to remove, and the opening at which it is exchanged for a
// link to the victim.
type ruse struct {
	name     string
	plant    func(dir, victim string) error
	onMarker bool // else when the directory is opened
	locked   bool // its marker, until it is exchanged
}

var ruses = []ruse{
	{"while its lock is waited for", plantMarker, true, true},
	{"before it is locked", plantMarker, false, false},
	{"after it was opened, unlocked", plantMarker, true, false},
	{"with a hard link as its marker", func(dir, _ string) error { return os.Link(rootsMarker(filepath.Dir(dir)), markerIn(dir)) }, false, false},
	{"with a symbolic link as its marker", func(dir, victim string) error { return os.Symlink(markerIn(victim), markerIn(dir)) }, false, false},
	{"with a pipe as its marker", func(dir, _ string) error { return unix.Mkfifo(markerIn(dir), 0o666) }, false, false},
	{"with a link where it is mounted", func(dir, victim string) error {
		return errors.Join(plantMarker(dir, victim), os.Symlink(victim, mountIn(dir)))
	}, false, false},
	{"with a link as its image", func(dir, victim string) error {
		return errors.Join(plantMarker(dir, victim), os.Symlink(imageIn(victim), imageIn(dir)))
	}, false, false},
}

// rootsMarker is a marker of root that anybody may give a second name.
func rootsMarker(parent string) string { return filepath.Join(parent, "roots") }

func plantMarker(dir, _ string) error {
	return errors.Join(os.WriteFile(markerIn(dir), []byte(deadText), 0o666), os.Chmod(markerIn(dir), 0o666))
}

// TestRootRemovesNothingWhereAStrangerLeadsIt has another user plant what looks like a
// leftover. While root looks at it, that user exchanges it for a link to a directory of
// root.
func TestRootRemovesNothingWhereAStrangerLeadsIt(t *testing.T) {
	for _, r := range ruses {
		for _, of := range []string{"of everybody", "of the stranger"} {
			t.Run(r.name+", in a directory "+of, func(t *testing.T) {
				t.Parallel()
				rounds, lost, exchanged := fewRounds, 0, 0
				if r.locked && !testing.Short() {
					rounds = isolate.AttackRounds
				}
				victim := plantVictim(t)
				want := below(t, victim)
				for round := range rounds {
					exchanged += r.attack(t, isolate.Public(t, of == "of the stranger"), victim, uint32(round))
					if below(t, victim) == want {
						continue
					}
					lost++
					victim = plantVictim(t)
				}
				if lost > 0 {
					t.Errorf("in %d of %d rounds (%d exchanges) root has removed what was not to be", lost, rounds, exchanged)
				}
			})
		}
	}
}

// attack is one round. The stranger gives its lock up when it has exchanged.
func (r ruse) attack(t *testing.T, parent, victim string, number uint32) (exchanged int) {
	t.Helper()
	dir, link := filepath.Join(parent, dirName(number)), filepath.Join(parent, "zz-link")
	var lock *os.File
	if err := errors.Join(os.WriteFile(rootsMarker(parent), []byte(deadText), 0o666), os.Chmod(rootsMarker(parent), 0o666)); err != nil {
		t.Fatal(err)
	}
	isolate.AsStranger(t, func() error {
		err := errors.Join(os.Mkdir(dir, 0o755), r.plant(dir, victim), os.Symlink(victim, link))
		if err == nil && r.locked {
			if lock, err = os.Open(markerIn(dir)); err == nil {
				_, err = takeLock(lock)
			}
		}
		return err
	})
	watched := dir
	if r.onMarker {
		watched = markerIn(dir)
	}
	stop := isolate.Exchanging(t, dir, link, func() { lock.Close() }, watched)
	if number%2 == 0 {
		_ = RemoveLeftover(dir)
	} else {
		_ = removeLeftovers(parent)
	}
	exchanged = stop()
	lock.Close()
	return exchanged
}

// TestLocksOfDeadProcessesAreWaitedForOnceForAll has directories of this user that are locked, as
// by the child of a killed process, in fake time.
func TestLocksOfDeadProcessesAreWaitedForOnceForAll(t *testing.T) {
	parent := t.TempDir()
	for n := range uint32(8) {
		hold(t, plant(t, parent, dirName(n), map[string]string{markerName: deadText}))
	}
	check := func(what string, look func()) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			look()
			if waited := time.Since(begun); waited > scanning {
				t.Errorf("%s of 8 locked directories waited %v, more than %v", what, waited, scanning)
			}
		})
	}
	check("a list", func() {
		if left, err := Leftovers(parent); len(left) > 0 || err != nil {
			t.Errorf("%v, %v", left, err)
		}
	})
	check("a removal", func() {
		if removed := removeLeftovers(parent); removed != nil {
			t.Errorf("removed %v", removed)
		}
	})
}

// TestLocksOfStrangersAreNotWaitedFor has them lock what looks like leftovers.
func TestLocksOfStrangersAreNotWaitedFor(t *testing.T) {
	parent := isolate.Public(t, false)
	isolate.AsStranger(t, func() (err error) {
		for n := range uint32(8) {
			dir := filepath.Join(parent, dirName(n))
			err = errors.Join(err, os.Mkdir(dir, 0o755), plantMarker(dir, ""))
		}
		return err
	})
	for n := range uint32(8) {
		hold(t, filepath.Join(parent, dirName(n)))
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		left, err := Leftovers(parent)
		var foreign *workdir.ForeignError
		if len(left) > 0 || !errors.As(err, &foreign) || filepath.Dir(foreign.Dir) != parent {
			t.Errorf("%v, %v", left, err)
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

// TestRootMakesNothingWhereAStrangerLeadsIt has a volume made and closed in a
// directory. The directory's owner exchanges all that comes into it for a link to a
// directory of root.
func TestRootMakesNothingWhereAStrangerLeadsIt(t *testing.T) {
	if err := kind(t, "ext4").Can(); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"ext4", "tmpfs"} {
		t.Run(name, func(t *testing.T) {
			victim := plantVictim(t)
			want := below(t, victim)
			rounds := 10
			if name == "tmpfs" && !testing.Short() {
				rounds = isolate.AttackRounds
			}
			exchanged, made, lost := 0, 0, 0
			for range rounds {
				parent := isolate.Public(t, true)
				link := filepath.Join(parent, "zz-link")
				if err := os.Symlink(victim, link); err != nil {
					t.Fatal(err)
				}
				stop := isolate.ExchangingAll(t, parent, link)
				v, err := Make(t.Context(), parent, kind(t, name), small(kind(t, name)))
				if err == nil {
					made++
					if err := os.WriteFile(filepath.Join(v.Dir(), "written"), nil, 0o600); err != nil {
						t.Error(err)
					}
					if err := v.Close(); err != nil && !strings.Contains(err.Error(), " is left: ") { // under another name
						t.Error(err)
					}
				}
				exchanged += stop()
				if m, ok, err := mountBelow(victim); ok || err != nil {
					t.Errorf("%+v is mounted on the victim, %v", m, err)
					_ = unix.Unmount(m.Point, unix.MNT_DETACH)
				}
				if below(t, victim) != want {
					lost++
					victim = plantVictim(t)
				}
			}
			t.Logf("%d exchanges in %d rounds, %d volumes made", exchanged, rounds, made)
			if lost > 0 {
				t.Errorf("in %d of %d rounds root has changed what a stranger led it to", lost, rounds)
			}
			if n := len(loopsBelow(filepath.Dir(victim))); n > 0 {
				t.Errorf("%d loop devices are left", n)
			}
		})
	}
}

// mountBelow returns a mount in a directory.
func mountBelow(dir string) (found mountinfo.Mount, ok bool, err error) {
	all, err := mountinfo.Read()
	for _, m := range all {
		if strings.HasPrefix(m.Point, dir+"/") {
			found, ok = m, true
		}
	}
	return found, ok, err
}

// loopsBelow returns the loop devices whose image is in a directory.
func loopsBelow(dir string) (all []string) {
	for device, image := range loops() {
		if strings.HasPrefix(image, dir+"/") {
			all = append(all, device)
		}
	}
	return all
}

// TestRootsLeftoverIsExchangedWhileItIsRemoved has a leftover of root itself, in a directory
// whose owner exchanges it for a link to another of root's.
func TestRootsLeftoverIsExchangedWhileItIsRemoved(t *testing.T) {
	victim := plantVictim(t)
	want, lost, removed, exchanged := below(t, victim), 0, 0, 0
	for range isolate.AttackRounds {
		parent := isolate.Public(t, true)
		link := filepath.Join(parent, "zz-link")
		dir := plant(t, parent, dirName(7), map[string]string{markerName: deadText, imageName: "an image"})
		if err := errors.Join(os.Mkdir(mountIn(dir), 0o700), os.Symlink(victim, link)); err != nil {
			t.Fatal(err)
		}
		stop := isolate.ExchangingAll(t, parent, link)
		removed += len(removeLeftovers(parent))
		exchanged += stop()
		if below(t, victim) != want {
			lost++
			victim = plantVictim(t)
		}
	}
	t.Logf("%d exchanges, %d leftovers removed", exchanged, removed)
	if lost > 0 {
		t.Errorf("in %d of %d rounds root has removed what was not to be", lost, isolate.AttackRounds)
	}
}
