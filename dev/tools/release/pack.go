package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A file is one in an archive, a package or an image. Of a directory the mode says so.
type file struct {
	name string
	mode fs.FileMode
	data []byte
}

// base is the name of a platform's files, without what says their form.
func (r *release) base(p platform) string {
	return fmt.Sprintf("holdfast-%s-%s-%s", r.version, p.system, p.processor)
}

// pack makes what one platform has: an archive, its bill of materials and, on Linux, packages and an image.
func (r *release) pack(p platform, binary string, common []file) error {
	code, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	command := file{"holdfast", 0o755, code}
	if p.system == "windows" {
		command.name += ".exe"
	}
	base := r.base(p)
	files := slices.Concat([]file{command}, common)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	if p.system == "windows" {
		err = r.create(base+".zip", func(f *os.File) error { return writeZip(f, base, files, r.when) })
	} else {
		err = r.create(base+".tar.gz", func(f *os.File) error { return writeTarGz(f, base, files, r.when) })
	}
	if err != nil {
		return err
	}
	if err := r.create(base+".cdx.json", func(f *os.File) error { return r.bill(f, p, binary) }); err != nil || p.system != "linux" {
		return err
	}
	if err := r.create(base+".oci.tar", func(f *os.File) error { return r.image(f, p, command) }); err != nil || !r.packages {
		return err
	}
	return r.installable(p, files, binary+"-package")
}

func writeTarGz(w io.Writer, base string, files []file, when time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeTar(z, base, files, when); err != nil {
		return err
	}
	return z.Close()
}

// writeTar writes files of root, all of one time.
func writeTar(w io.Writer, base string, files []file, when time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		head := &tar.Header{Name: path.Join(base, f.name), Mode: int64(f.mode.Perm()), Size: int64(len(f.data)), ModTime: when, Typeflag: tar.TypeReg}
		if f.mode.IsDir() {
			head.Name, head.Typeflag = head.Name+"/", tar.TypeDir
			if f.mode&fs.ModeSticky != 0 {
				head.Mode |= 0o1000
			}
		}
		if err := t.WriteHeader(head); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeZip(w io.Writer, base string, files []file, when time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		head := &zip.FileHeader{Name: path.Join(base, f.name), Method: zip.Deflate, Modified: when}
		head.SetMode(f.mode)
		entry, err := z.CreateHeader(head)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}

// installed says where a package puts a file of the archive. Debian and RPM differ in zsh's alone.
func installed(name, packager string) string {
	zsh := map[string]string{"deb": "/usr/share/zsh/vendor-completions/", "rpm": "/usr/share/zsh/site-functions/"}
	switch {
	case name == "holdfast":
		return "/usr/bin/holdfast"
	case name == "completions/holdfast.bash":
		return "/usr/share/bash-completion/completions/holdfast"
	case name == "completions/_holdfast":
		return zsh[packager] + "_holdfast"
	case name == "completions/holdfast.fish":
		return "/usr/share/fish/vendor_completions.d/holdfast.fish"
	case strings.HasPrefix(name, "completions/"):
		return ""
	case strings.HasPrefix(name, "man/"):
		return "/usr/share/man/man1/" + path.Base(name) + ".gz"
	case name == "LICENSE":
		return "/usr/share/doc/holdfast/copyright"
	case name == "CHANGELOG.md":
		return "/usr/share/doc/holdfast/changelog.gz"
	}
	return "/usr/share/doc/holdfast/" + name
}

// installable makes the packages of Debian and of RPM, by nfpm. That program has a module of its own,
// so that only a release needs what it needs.
func (r *release) installable(p platform, files []file, stage string) error {
	for _, packager := range []string{"deb", "rpm"} {
		var contents []map[string]any
		for _, f := range files {
			to := installed(f.name, packager)
			if to == "" {
				continue
			}
			data, from := f.data, filepath.Join(stage, packager, filepath.FromSlash(to))
			if strings.HasSuffix(to, ".gz") {
				var small bytes.Buffer
				z, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
				if err != nil {
					return err
				}
				z.Write(data)
				if err := z.Close(); err != nil {
					return err
				}
				data = small.Bytes()
			}
			if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(from, data, f.mode); err != nil {
				return err
			}
			contents = append(contents, map[string]any{"src": from, "dst": to, "file_info": map[string]any{"mode": f.mode, "mtime": r.when.Format(time.RFC3339)}})
		}
		if packager == "rpm" { // which removes only directories that a package has
			contents = append(contents, map[string]any{"dst": "/usr/share/doc/holdfast", "type": "dir", "file_info": map[string]any{"mode": 0o755, "mtime": r.when.Format(time.RFC3339)}})
		}
		config, err := json.Marshal(map[string]any{ // which is YAML too
			"name": "holdfast", "arch": p.processor, "platform": "linux", "version": "v" + r.version, "version_schema": "semver",
			"section": "utils", "priority": "optional", "maintainer": "The holdfast Authors", "homepage": home, "license": "BSD-3-Clause",
			"description": about + "\n" + more, "suggests": []string{"e2fsprogs", "xfsprogs", "btrfs-progs"}, "contents": contents,
			"rpm": map[string]any{"buildhost": "holdfast", "summary": about, "group": "Applications/System"}, "mtime": r.when.Format(time.RFC3339),
		})
		if err != nil {
			return err
		}
		list := filepath.Join(stage, packager+".yaml")
		if err := os.WriteFile(list, config, 0o644); err != nil {
			return err
		}
		name := fmt.Sprintf("holdfast-%s-linux-%s.%s", r.version, p.processor, packager)
		cmd := exec.Command("go", "tool", "nfpm", "package", "--config", list, "--packager", packager, "--target", filepath.Join(r.out, name))
		cmd.Dir = filepath.Join(r.source, "dev", "tools", "release", "nfpm")
		cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.when.Unix()))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nfpm for %s: %w\n%s", name, err, out)
		}
		r.made = append(r.made, name)
	}
	return nil
}
