package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// CanMake returns nil if the programs are here that make the file system in an image
// and check it, or a [*MissingError]. They need neither root nor a driver in the kernel.
func (k Kind) CanMake() error { return k.canMakeOn(hostHere()) }

func (k Kind) canMakeOn(h host) error {
	if k.Program == "" {
		return &MissingError{Kind: k.Name, Why: "it is in memory, so it has no image"}
	}
	for _, program := range k.programs() {
		if _, err := h.find(program); err != nil {
			return &MissingError{Kind: k.Name, Package: k.Debian, Why: fmt.Sprintf("%v (Debian: apt-get install %s)", err, k.Debian)}
		}
	}
	return nil
}

// MakeImage makes the file system in a new sparse file of size bytes, for another
// program to mount. If the file exists it stays, and the error is fs.ErrExist. After
// another error there is no file, unless the error says so.
func (k Kind) MakeImage(ctx context.Context, image string, size int64) error {
	if err := k.CanMake(); err != nil {
		return err
	}
	if err := k.enough(size); err != nil {
		return err
	}
	err := k.makeImage(ctx, image, size)
	if err != nil && !errors.Is(err, os.ErrExist) {
		err = errors.Join(err, os.Remove(image))
	}
	return err
}

func (k Kind) makeImage(ctx context.Context, image string, size int64) error {
	f, err := os.OpenFile(image, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	args := slices.Clone(k.Make)
	// In a file mkfs.xfs finds smaller sectors than the loop device may have.
	if size := k.sectors(image); k.Type == "xfs" && size > 512 {
		args = append(args, "-s", fmt.Sprint("size=", size))
	}
	_, err = hostHere().run(ctx, k.Program, append(args, image)...)
	return err
}

// CheckImage lets the file system's own program check an image that is not mounted.
// The program's findings are a [*DamageError].
func (k Kind) CheckImage(ctx context.Context, image string) error {
	if k.Check == nil {
		return nil
	}
	out, err := hostHere().run(ctx, k.Check[0], append(slices.Clone(k.Check[1:]), image)...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return &DamageError{Kind: k.Name, Found: k.Check[0] + ": " + cmp.Or(findings(strings.ReplaceAll(out, image, k.Name)), exit.Error())}
	}
	return err
}

// progress matches lines that checks print as they go, and not what they find. On every image in
// another file system, xfs_repair(8) prints that it doesn't know the sectors below it.
func progress() *regexp.Regexp {
	return regexp.MustCompile(`^(Phase \d|- |Pass \d|e2fsck \d|Opening |Checking |UUID|\[\d/\d\]|` +
		`Cannot get host filesystem geometry|Repair may fail if there is a sector size|the image and the host filesystem|$)`)
}

// findings returns the first few lines of a check's findings.
func findings(output string) string {
	const most = 4
	var found []string
	known := progress()
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case known.MatchString(line):
		case len(found) == most:
			return strings.Join(found, "; ") + "; and more"
		default:
			found = append(found, line)
		}
	}
	return strings.Join(found, "; ")
}
