package uml

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
)

var update = flag.Bool("update", false, "write the golden files anew")

func archive(t *testing.T) []byte {
	t.Helper()
	from := filepath.Join(t.TempDir(), "x.ko")
	if err := os.WriteFile(from, []byte("a module"), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	err := pack(&b, []packed{
		{path: "/init", mode: 0o755, text: []byte("a program")},
		{path: "/lib/deep/x.ko", mode: 0o644, from: from},
		{path: "/lib/y", mode: 0o644},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestArchiveIsTheSameWhereverItIsMade(t *testing.T) {
	golden := filepath.Join("testdata", "initramfs")
	got := archive(t)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the archive is not that of %s:\n%q", golden, got)
	}
}

func TestArchiveHoldsEachDirectoryBeforeItsFiles(t *testing.T) {
	want := []string{"init 755 a program", "lib dir", "lib/deep dir", "lib/deep/x.ko 644 a module", "lib/y 644 "}
	var got []string
	r := cpio.NewReader(bytes.NewReader(archive(t)))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry(h, text))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func entry(h *cpio.Header, text []byte) string {
	if h.Mode.IsDir() {
		return h.Name + " dir"
	}
	mode := map[cpio.FileMode]string{0o755: "755", 0o644: "644"}[h.Mode.Perm()]
	return h.Name + " " + mode + " " + string(text)
}

func TestOthersReadTheArchive(t *testing.T) {
	program, err := exec.LookPath("cpio")
	if err != nil {
		t.Skip("there is no cpio to read it with")
	}
	cmd := exec.Command(program, "--list", "--quiet")
	cmd.Stdin = bytes.NewReader(archive(t))
	out, err := cmd.CombinedOutput()
	if want := "init\nlib\nlib/deep\nlib/deep/x.ko\nlib/y\n"; err != nil || string(out) != want {
		t.Errorf("cpio read %q (%v), want %q", out, err, want)
	}
}

func TestExistingFileIsNoPlaceForAnArchive(t *testing.T) {
	name := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeInitramfs(name, nil); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
}
