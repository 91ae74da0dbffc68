package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A host is what file systems are made with.
type host struct {
	path string                        // folders of programs, as in PATH
	root bool                          // whether we are
	loop string                        // the device that gives loop devices
	has  func(filesystem string) error // nil if the kernel has it
}

// hostHere is this machine. Programs that make file systems are often in folders
// that the PATH of a user has not.
func hostHere() host {
	return host{
		path: os.Getenv("PATH") + ":/usr/local/sbin:/usr/sbin:/sbin",
		root: mayMount(),
		loop: "/dev/loop-control",
		has:  kernelHas,
	}
}

// mayMount tells whether this process has root's right to mount, which it may lack
// in a container: fsopen(2).
func mayMount() bool {
	fd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return os.Geteuid() == 0 && !errors.Is(err, unix.EPERM)
}

// find looks a program up.
func (h host) find(name string) (string, error) {
	for _, dir := range filepath.SplitList(h.path) {
		path := filepath.Join(dir, name)
		if !filepath.IsAbs(path) {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// Can returns nil if the file system can be made and mounted here, or a
// [*MissingError] that names all that is missing.
func (k Kind) Can() error { return k.canOn(hostHere()) }

func (k Kind) canOn(h host) error {
	missing := &MissingError{Kind: k.Name}
	var why []string
	if err := h.has(k.Type); err != nil {
		missing.Kernel = true
		why = append(why, err.Error())
	}
	for _, program := range k.programs() {
		if _, err := h.find(program); err != nil {
			missing.Package = k.Debian
			why = append(why, fmt.Sprintf("%v (Debian: apt-get install %s)", err, k.Debian))
			break
		}
	}
	if !h.root {
		missing.Root = true
		why = append(why, "only root can mount it")
	} else if _, err := os.Stat(h.loop); err != nil && k.Program != "" {
		why = append(why, fmt.Sprintf("there are no loop devices (%s is not there; modprobe loop, or a container that is given it)", h.loop))
	}
	if why == nil {
		return nil
	}
	missing.Why = strings.Join(why, ", and ")
	return missing
}

// programs are those that make and check it.
func (k Kind) programs() []string {
	var all []string
	if k.Program != "" {
		all = append(all, k.Program)
	}
	if k.Check != nil {
		all = append(all, k.Check[0])
	}
	return all
}

// kernelHas returns nil if the kernel has the file system, or has it in a module. As
// root it is asked to load that: fsopen(2), Linux 5.2.
func kernelHas(filesystem string) error {
	fd, err := unix.Fsopen(filesystem, unix.FSOPEN_CLOEXEC)
	if err == nil {
		unix.Close(fd)
		return nil
	}
	if !errors.Is(err, unix.ENODEV) && (listed(filesystem) || moduleOf(filesystem)) {
		return nil
	}
	return fmt.Errorf("this kernel has no %s", filesystem)
}

func listed(filesystem string) bool {
	text, _ := os.ReadFile("/proc/filesystems")
	return slices.Contains(strings.Fields(string(text)), filesystem)
}

// moduleOf tells whether the kernel has a module of that name: depmod(8).
func moduleOf(filesystem string) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	text, _ := os.ReadFile(filepath.Join("/lib/modules", unix.ByteSliceToString(name.Release[:]), "modules.dep"))
	return strings.Contains(string(text), "/"+filesystem+".ko")
}
