// Command foreign mounts file systems that programs meet, runs the library on each, and prints the table
// of kept promises in docs/file-systems.md.
//
//	go -C dev run ./foreign                        all that can be mounted here
//	go -C dev run ./foreign -install               gets the Debian packages that are missing
//	go -C dev run ./foreign -run 'ntfs|exfat' -v   says why something does not hold
//
// It takes root. The mounts are in a namespace of its own, and end with it. File systems that can't be
// mounted are listed with the missing parts. Exit code 1 says that bytes or a name were lost without a
// word.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	install := flag.Bool("install", false, "install the Debian packages that are missing")
	pick := flag.String("run", "", "only file systems whose name matches this regular expression")
	verbose := flag.Bool("v", false, "say why something does not hold")
	flag.Parse()
	kept, err := run(*pick, *install, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "foreign:", err)
		os.Exit(3)
	}
	if !kept {
		os.Exit(1)
	}
}

// inOwnMounts is set in the child whose mounts end with it.
const inOwnMounts = "HOLDFAST_FOREIGN_MOUNTS"

func run(pick string, install, verbose bool) (kept bool, err error) {
	name, err := regexp.Compile(pick)
	if err != nil {
		return false, err
	}
	if os.Getenv(inOwnMounts) == "" {
		return again()
	}
	kept = true
	var rows, missing []string
	for _, g := range grounds() {
		if !name.MatchString(g.name) {
			continue
		}
		if install {
			if err := g.install(); err != nil {
				fmt.Fprintln(os.Stderr, "foreign:", err)
			}
		}
		row, lost, err := g.judge(verbose)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %s", g.name, strings.ReplaceAll(err.Error(), "\n", "; ")))
			continue
		}
		rows, kept = append(rows, row), kept && !lost
	}
	fmt.Println(head())
	for _, row := range rows {
		fmt.Println(row)
	}
	for _, m := range missing {
		fmt.Fprintln(os.Stderr, "not mounted:", m)
	}
	return kept, nil
}

// again runs this program in a mount namespace of its own.
func again() (kept bool, err error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inOwnMounts+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	err = cmd.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

// A ground is a file system to be mounted.
type ground struct {
	name     string
	packages string // of Debian
	mount    func(m *mounts, at string) error
}

// mounts makes what a ground needs in one directory.
type mounts struct{ dir string }

// run runs a program.
func (m *mounts) run(args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// below makes a directory for the files under a mount.
func (m *mounts) below(name string) (string, error) {
	dir := filepath.Join(m.dir, name)
	return dir, os.MkdirAll(dir, 0o755)
}

// image makes a file of some size with a file system in it.
func (m *mounts) image(size int64, mkfs ...string) (string, error) {
	image := filepath.Join(m.dir, "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size)); err != nil {
		return "", err
	}
	return image, m.run(append(mkfs, image)...)
}

// onImage returns the mount of an image by the kernel.
func onImage(size int64, mkfs ...string) func(*mounts, string) error {
	return func(m *mounts, at string) error {
		image, err := m.image(size, mkfs...)
		if err != nil {
			return err
		}
		return m.run("mount", "-o", "loop", image, at)
	}
}

const mib = 1 << 20

func grounds() []ground {
	return []ground{
		{"ext4", "e2fsprogs", onImage(64*mib, "mkfs.ext4", "-q", "-F")},
		{"ext4 without a journal", "e2fsprogs", onImage(64*mib, "mkfs.ext4", "-q", "-F", "-O", "^has_journal")},
		{"xfs", "xfsprogs", onImage(300*mib, "mkfs.xfs", "-q", "-f")},
		{"btrfs", "btrfs-progs", onImage(128*mib, "mkfs.btrfs", "-q", "-f")},
		{"tmpfs", "", func(m *mounts, at string) error { return m.run("mount", "-t", "tmpfs", "foreign", at) }},
		{"overlay", "", func(m *mounts, at string) error {
			if err := m.run("mount", "-t", "tmpfs", "foreign", m.dir); err != nil { // the lower one may not be an overlay too
				return err
			}
			var dirs [3]string
			for i, name := range []string{"lower", "upper", "work"} {
				var err error
				if dirs[i], err = m.below(name); err != nil {
					return err
				}
			}
			return m.run("mount", "-t", "overlay", "foreign", "-o", fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dirs[0], dirs[1], dirs[2]), at)
		}},
		{"exFAT (exfat-fuse)", "exfat-fuse exfatprogs", func(m *mounts, at string) error {
			image, err := m.image(64*mib, "mkfs.exfat")
			if err != nil {
				return err
			}
			return m.run("mount", "-t", "exfat-fuse", "-o", "loop", image, at)
		}},
		{"NTFS (ntfs-3g)", "ntfs-3g", func(m *mounts, at string) error {
			image, err := m.image(64*mib, "mkfs.ntfs", "-q", "-Q", "-F")
			if err != nil {
				return err
			}
			return m.run("ntfs-3g", image, at)
		}},
		{"sshfs", "sshfs openssh-sftp-server", sshfs},
		{"gocryptfs", "gocryptfs", func(m *mounts, at string) error {
			cipher, err := m.below("cipher")
			word := filepath.Join(m.dir, "word")
			if err = errors.Join(err, os.WriteFile(word, []byte("a word\n"), 0o600)); err != nil {
				return err
			}
			if err := m.run("gocryptfs", "-q", "-init", "-scryptn", "10", "-passfile", word, cipher); err != nil {
				return err
			}
			return m.run("gocryptfs", "-q", "-passfile", word, cipher, at)
		}},
		{"bindfs", "bindfs", func(m *mounts, at string) error {
			below, err := m.below("below")
			return cmp.Or(err, m.run("bindfs", below, at))
		}},
	}
}

// sshfs mounts a directory through an sftp server that is its own, without a network.
func sshfs(m *mounts, at string) error {
	below, err := m.below("below")
	if err != nil {
		return err
	}
	server := ""
	for _, path := range []string{"/usr/lib/openssh/sftp-server", "/usr/lib/sftp-server", "/usr/libexec/sftp-server"} {
		if _, err := os.Stat(path); err == nil {
			server = path
		}
	}
	if server == "" {
		return errors.New("there is no sftp-server")
	}
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ends := [2]*os.File{os.NewFile(uintptr(fds[0]), "sftp"), os.NewFile(uintptr(fds[1]), "sftp")}
	defer ends[0].Close()
	defer ends[1].Close()
	for i, args := range [][]string{{server}, {"sshfs", "-f", "-o", "passive", "foreign:" + below, at}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdin, cmd.Stdout = ends[i], ends[i]
		if err := cmd.Start(); err != nil {
			return err
		}
		go cmd.Wait()
	}
	return mounted(at)
}

// mounted waits until something is mounted on a directory.
func mounted(at string) error {
	for range 500 {
		var on, above syscall.Stat_t
		if err := errors.Join(syscall.Stat(at, &on), syscall.Stat(filepath.Dir(at), &above)); err == nil && on.Dev != above.Dev {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("nothing was mounted within 5 s")
}

// install gets the packages of a ground that are missing.
func (g *ground) install() error {
	for p := range strings.FieldsSeq(g.packages) {
		if exec.Command("dpkg", "-s", p).Run() == nil {
			continue
		}
		if err := new(mounts).run("apt-get", "install", "-y", "-q", p); err != nil {
			return err
		}
	}
	return nil
}

// judge mounts the ground and makes its row.
func (g *ground) judge(verbose bool) (row string, lost bool, err error) {
	dir, err := os.MkdirTemp("", "holdfast-foreign-")
	if err != nil {
		return "", false, err
	}
	at := filepath.Join(dir, "mount")
	m := &mounts{filepath.Join(dir, "below")}
	if err := errors.Join(os.Mkdir(at, 0o755), os.Mkdir(m.dir, 0o755)); err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	if err := g.mount(m, at); err != nil {
		return "", false, err
	}
	defer func() {
		for range 100 { // a server may be busy still
			if syscall.Unmount(at, 0) == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		_ = syscall.Unmount(m.dir, 0) // if something is mounted there
	}()
	if err := mounted(at); err != nil {
		return "", false, err
	}
	cells := []string{g.name}
	for _, c := range columns() {
		answer, err := c.ask(filepath.Join(at, c.name))
		cells = append(cells, answer)
		lost = lost || answer == isLost
		if verbose && err != nil {
			fmt.Fprintf(os.Stderr, "%s, %s: %v\n", g.name, c.title, err)
		}
	}
	return "| " + strings.Join(cells, " | ") + " |", lost, nil
}

func head() string {
	titles, line := "| |", "|---|"
	for _, c := range columns() {
		titles += " " + c.title + " |"
		line += "---|"
	}
	return titles + "\n" + line
}
