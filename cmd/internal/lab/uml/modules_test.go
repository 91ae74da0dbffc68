package uml

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// installed makes a kernel's directories with lists of modules, and a program in place of
// the kernel that prints a release.
func installed(t *testing.T, prints string) (program, modules string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"modules.dep": "kernel/fs/x/x-fs.ko: kernel/lib/b.ko kernel/lib/a.ko\nkernel/lib/a.ko:\nkernel/lib/b.ko: kernel/lib/a.ko\n" +
			"kernel/crypto/sum_generic.ko:\nkernel/fs/y.ko: kernel/lib/a.ko\nkernel/fs/soft.ko:\n",
		"modules.builtin": "kernel/fs/jfs/jfs.ko\n",
		"modules.softdep": "# a comment\nsoftdep soft pre: sum gone post: y\nsoftdep y post: x_fs\n",
		"modules.alias":   "# a comment\nalias sum sum_generic\n",
	} {
		path := filepath.Join(dir, "6.1", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(dir, "kernel")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '"+prints+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return program, dir
}

func TestModulesComeAfterWhatTheyNeed(t *testing.T) {
	_, dir := installed(t, "")
	k := Kernel{Modules: filepath.Join(dir, "6.1"), Release: "6.1"}
	check := func(names, want string) {
		t.Helper()
		files, err := k.modules(strings.Fields(names))
		if got := strings.Join(files, " "); err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", names, got, err, want)
		}
	}
	check("x-fs", "kernel/lib/a.ko kernel/lib/b.ko kernel/fs/x/x-fs.ko")
	check("x_fs y", "kernel/lib/a.ko kernel/lib/b.ko kernel/fs/x/x-fs.ko kernel/fs/y.ko")
	check("y y", "kernel/lib/a.ko kernel/fs/y.ko")
	check("jfs", "")
	check("soft", "kernel/crypto/sum_generic.ko kernel/fs/soft.ko")

	for name, want := range map[string]string{"jfs": "", "y": "", "zfs": "User-Mode Linux 6.1 has no zfs"} {
		err := k.Can(name)
		if got := text(err); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func skipWithoutScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a script is no program on Windows")
	}
}

func TestMissingKernelIsReportedWithItsPackage(t *testing.T) {
	skipWithoutScripts(t)
	check := func(program, modules, want string) {
		t.Helper()
		_, err := findAt(t.Context(), program, modules)
		var missing *MissingError
		if !errors.As(err, &missing) || missing.Package != Package || !strings.Contains(missing.Why, want) {
			t.Errorf("got %v, want %q and the package", err, want)
		}
	}
	program, modules := installed(t, "6.1\\n")
	check(program, t.TempDir(), "has no modules in ")
	check(filepath.Join(modules, "nothing"), modules, "names no release")
	odd, modules := installed(t, "usage: kernel\\n")
	check(odd, modules, "names no release")

	t.Setenv("PATH", t.TempDir())
	if _, err := Find(t.Context()); text(err) != "the program linux.uml is not installed" {
		t.Errorf("got %v", err)
	}
}

func TestKernelIsFoundByItsRelease(t *testing.T) {
	skipWithoutScripts(t)
	program, modules := installed(t, "6.1\\n")
	want := Kernel{program, "6.1", filepath.Join(modules, "6.1")}
	if k, err := findAt(t.Context(), program, modules); err != nil || k != want {
		t.Errorf("got %v (%v), want %v", k, err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := findAt(ctx, program, modules); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
