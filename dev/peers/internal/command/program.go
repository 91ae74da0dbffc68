package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Build builds our command in a directory, which is absolute, from the module that this program is of, which the go command knows.
func Build(ctx context.Context, dir string) error {
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/holdfast-go/holdfast").Output()
	if err != nil {
		return fmt.Errorf("the go command does not find holdfast; run it in the directory peers (%w): %w", errors.ErrUnsupported, err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-C", strings.TrimSpace(string(module)), "-trimpath", "-o", dir+string(os.PathSeparator), "./cmd/holdfast")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// Programs returns the versions of programs, as they say them.
func Programs(ctx context.Context, names ...string) (list []string) {
	for _, name := range names {
		out, err := exec.CommandContext(ctx, name, "--version").Output()
		if errors.Is(err, exec.ErrNotFound) {
			list = append(list, name+" is not installed")
			continue
		}
		if err != nil { // such as mawk's awk
			list = append(list, name+" (it does not say its version)")
			continue
		}
		list = append(list, strings.Join(strings.Fields(FirstLine(string(out))), " "))
	}
	return list
}
