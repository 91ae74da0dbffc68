package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// user is who runs in the image; Kubernetes asks for a number.
const user = "65532:65532"

// image writes a container image from scratch, as an OCI layout in one tar. It has the command, a
// directory for temporary files, and /data for a volume. Without arguments it answers whether that
// volume is fast enough for etcd. It runs as a user without rights, and all may write to /data: a new volume of Docker is like
// the directory.
func (r *release) image(w io.Writer, p platform, command file) error {
	dirs := []file{{"data", fs.ModeDir | 0o777, nil}, {"tmp", fs.ModeDir | fs.ModeSticky | 0o777, nil}}
	var layer, plain bytes.Buffer
	files := append(dirs, command)
	if err := writeTar(&plain, "", files, r.when); err != nil {
		return err
	}
	if err := writeTarGz(&layer, "", files, r.when); err != nil {
		return err
	}
	var blobs []file
	add := func(mediaType string, data []byte) v1.Descriptor {
		d := digest.FromBytes(data)
		blobs = append(blobs, file{"blobs/sha256/" + d.Encoded(), 0o644, data})
		return v1.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(data))}
	}
	labels := map[string]string{
		v1.AnnotationTitle: "holdfast", v1.AnnotationDescription: about, v1.AnnotationSource: home, v1.AnnotationLicenses: "BSD-3-Clause",
		v1.AnnotationVersion: r.version, v1.AnnotationRevision: r.commit,
	}
	here := v1.Platform{OS: p.system, Architecture: p.processor}
	config, err := json.Marshal(v1.Image{
		Created: &r.when, Platform: here,
		Config: v1.ImageConfig{User: user, Entrypoint: []string{"/holdfast"}, Cmd: []string{"advise", "--for", "etcd"}, WorkingDir: "/data", Labels: labels},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(plain.Bytes())}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: add(v1.MediaTypeImageConfig, config), Layers: []v1.Descriptor{add(v1.MediaTypeImageLayerGzip, layer.Bytes())}, Annotations: labels,
	})
	if err != nil {
		return err
	}
	entry := add(v1.MediaTypeImageManifest, manifest)
	entry.Platform = &here
	name := "holdfast:" + r.version
	entry.Annotations = map[string]string{v1.AnnotationRefName: name, "io.containerd.image.name": "localhost/" + name}
	index, err := json.Marshal(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{entry}})
	if err != nil {
		return err
	}
	layout, err := json.Marshal(v1.ImageLayout{Version: v1.ImageLayoutVersion})
	if err != nil {
		return err
	}
	return writeTar(w, "", append([]file{{v1.ImageLayoutFile, 0o644, layout}, {v1.ImageIndexFile, 0o644, index}}, blobs...), r.when)
}
