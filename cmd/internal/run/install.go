package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// An installer gets Debian's packages, where they are asked for.
type installer struct {
	root   bool
	find   func(program string) (string, error)
	stderr io.Writer
}

// installMissing installs the packages that --fs and --kernel need and that are not
// there, if --install was given.
func (w *Where) installMissing(cmd *cobra.Command) error {
	if !w.Install {
		return nil
	}
	packages := w.missingPackages(cmd.Context())
	if len(packages) == 0 {
		return nil
	}
	return installer{os.Geteuid() == 0, exec.LookPath, cmd.ErrOrStderr()}.install(cmd.Context(), packages)
}

// missingPackages are the packages that would help, in order, each once.
func (w *Where) missingPackages(ctx context.Context) []string {
	for _, k := range w.kernels {
		if k.Name() == w.Kernel {
			return k.Packages(ctx, w.Kinds)
		}
	}
	return place.Packages(w.Kinds, volume.Kind.Can)
}

// install runs apt-get, and prints its output.
func (i installer) install(ctx context.Context, packages []string) error {
	args := append([]string{"install", "-y"}, packages...)
	line := "apt-get " + strings.Join(args, " ")
	program, err := i.find("apt-get")
	switch {
	case err != nil:
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--install needs apt-get, which this system lacks, to install %s", strings.Join(packages, ", ")), Hint: "install the same programs with this system's own package manager"}
	case !i.root:
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--install: only root can install %s", strings.Join(packages, ", ")), Hint: "run: sudo " + line}
	}
	cli.Say(i.stderr, "%s", line)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = cli.Bare(i.stderr), cli.Bare(i.stderr)
	if err := cmd.Run(); err != nil {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--install: %s: %w", line, cmp.Or(ctx.Err(), err)), Hint: "apt-get update may help, or the package has another name on this system"}
	}
	return nil
}
