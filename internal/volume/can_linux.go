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

// A host is the machine that makes file systems.
type host struct {
	path string                        // directories of programs, as in PATH
	root bool                          // whether this process may mount
	loop string                        // the device that gives loop devices
	has  func(filesystem string) error // nil if the kernel has it
}

// hostHere is this machine. Programs that make file systems are often in directories
// that are not in a user's PATH.
func hostHere() host {
	// In a container root may lack the right to mount: fsopen(2).
	fd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return host{
		path: os.Getenv("PATH") + ":/usr/local/sbin:/usr/sbin:/sbin",
		root: os.Geteuid() == 0 && !errors.Is(err, unix.EPERM),
		loop: "/dev/loop-control",
		has:  kernelHas,
	}
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
		why = append(why, fmt.Sprintf("there are no loop devices (%s does not exist; run modprobe loop, or give the device to the container)", h.loop))
	}
	if why == nil {
		return nil
	}
	missing.Why = strings.Join(why, ", and ")
	return missing
}

// programs returns the programs that make and check it.
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

// kernelHas returns nil if the kernel has the file system, or has it in a module. For
// root, the kernel loads the module: fsopen(2), Linux 5.2.
func kernelHas(filesystem string) error {
	fd, err := unix.Fsopen(filesystem, unix.FSOPEN_CLOEXEC)
	if err == nil {
		unix.Close(fd)
		return nil
	}
	if !errors.Is(err, unix.ENODEV) {
		listed, _ := os.ReadFile("/proc/filesystems")
		var name unix.Utsname
		_ = unix.Uname(&name)                                                                                            // after an error there is no such list
		modules, _ := os.ReadFile(filepath.Join("/lib/modules", unix.ByteSliceToString(name.Release[:]), "modules.dep")) // depmod(8)
		if slices.Contains(strings.Fields(string(listed)), filesystem) || strings.Contains(string(modules), "/"+filesystem+".ko") {
			return nil
		}
	}
	return fmt.Errorf("this kernel has no %s", filesystem)
}
