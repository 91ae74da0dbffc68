// Package uml runs this very program inside User-Mode Linux: a Linux kernel that is
// an ordinary process, and needs neither root nor a virtual machine. It has file
// systems that the kernel outside may lack.
//
// Outside, start with [Find] and [Kernel.Run]; inside, with [Enter].
package uml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Package is the one of Debian that has the kernel.
const Package = "user-mode-linux"

// A Kernel is one of User-Mode Linux that is installed here.
type Kernel struct {
	Program string // the file that is the kernel
	Release string // as uname -r says inside, such as 6.1.0
	Modules string // the directory of its modules
}

// A MissingError reports which part of User-Mode Linux is missing.
type MissingError struct {
	Why     string // one clause
	Package string // of Debian, which would help; or empty
}

func (e *MissingError) Error() string { return e.Why }

// program is Debian's name for the kernel; moduleRoot is the directory of its modules.
const (
	program    = "linux.uml"
	moduleRoot = "/usr/lib/uml/modules"
)

// Find returns the kernel that is installed, or a [*MissingError]. It runs the kernel's
// program to ask for its release.
func Find(ctx context.Context) (Kernel, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return Kernel{}, &MissingError{"the program " + program + " is not installed", Package}
	}
	return findAt(ctx, path, moduleRoot)
}

func findAt(ctx context.Context, path, modules string) (Kernel, error) {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if ctx.Err() != nil {
		return Kernel{}, ctx.Err()
	}
	release := strings.TrimSpace(string(out))
	if err != nil || release == "" || strings.ContainsAny(release, "/ \n") {
		return Kernel{}, &MissingError{fmt.Sprintf("%s --version names no release, so it is no kernel of User-Mode Linux that runs here", path), Package}
	}
	k := Kernel{Program: path, Release: release, Modules: filepath.Join(modules, release)}
	if _, err := os.Stat(filepath.Join(k.Modules, "modules.dep")); err != nil {
		return Kernel{}, &MissingError{fmt.Sprintf("%s has no modules in %s", path, k.Modules), Package}
	}
	return k, nil
}

// Can returns nil if the kernel has a driver of the file system, built in or as a
// module. Otherwise it returns a [*MissingError].
func (k Kernel) Can(fileSystem string) error {
	if fileSystem == "tmpfs" || fileSystem == "ext4" { // ext4 is jbd2's reason to be here, and tmpfs is in every kernel
		return nil
	}
	_, err := k.modules([]string{fileSystem})
	var unknown *unknownModule
	if errors.As(err, &unknown) {
		return &MissingError{Why: fmt.Sprintf("User-Mode Linux %s has no %s", k.Release, fileSystem)}
	}
	return err
}
