package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/uml"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// An installer gets Debian's packages, where they are asked for.
type installer struct {
	root   bool
	find   func(program string) (string, error)
	stderr io.Writer
}

func newInstaller(stderr io.Writer) installer {
	return installer{os.Geteuid() == 0, exec.LookPath, stderr}
}

// installMissing installs the packages that --fs and --kernel need and that are not
// there, if --install was given.
func (b *benchmark) installMissing(cmd *cobra.Command) error {
	if !b.install {
		return nil
	}
	packages := b.missingPackages(cmd.Context())
	if len(packages) == 0 {
		return nil
	}
	return newInstaller(cmd.ErrOrStderr()).install(cmd.Context(), packages)
}

// missingPackages are those that would help, in order, each once.
func (b *benchmark) missingPackages(ctx context.Context) (packages []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(packages, name) {
			packages = append(packages, name)
		}
	}
	var kernel *uml.MissingError
	if b.kernel != "" {
		if _, err := uml.Find(ctx); errors.As(err, &kernel) {
			add(kernel.Package)
		}
	}
	for _, k := range b.fs {
		err := k.Can()
		if b.kernel != "" {
			err = k.CanMake()
		}
		var missing *volume.MissingError
		if errors.As(err, &missing) {
			add(missing.Package)
		}
	}
	slices.Sort(packages)
	return packages
}

// install runs apt-get, and tells what it says.
func (i installer) install(ctx context.Context, packages []string) error {
	args := append([]string{"install", "-y"}, packages...)
	line := "apt-get " + strings.Join(args, " ")
	program, err := i.find("apt-get")
	switch {
	case err != nil:
		return &refusal{exitCannot, fmt.Errorf("--install: there is no apt-get here, and %s is missing", strings.Join(packages, ", ")), "install what these packages of Debian have by the system's own way"}
	case !i.root:
		return &refusal{exitCannot, fmt.Errorf("--install: only root can install %s", strings.Join(packages, ", ")), "run: sudo " + line}
	}
	fmt.Fprintf(i.stderr, "holdfast: %s\n", line)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = i.stderr, i.stderr
	if err := cmd.Run(); err != nil {
		return &refusal{exitCannot, fmt.Errorf("--install: %s: %w", line, cmp.Or(ctx.Err(), err)), "apt-get update may help, or the package has another name on this system"}
	}
	return nil
}
