package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bill writes the bill of materials of a binary in CycloneDX: the modules that it was linked from, as it
// says itself, with their licences.
func (r *release) bill(f *os.File, p platform, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	linked, err := linkedModules(r.source, []platform{p})
	if err != nil {
		return err
	}
	licences := map[string]cdx.Licenses{"std": {{License: &cdx.License{ID: "BSD-3-Clause"}}}}
	for _, m := range linked {
		ids, err := m.licences()
		if err != nil {
			return err
		}
		for _, id := range ids {
			licences[m.path] = append(licences[m.path], cdx.LicenseChoice{License: &cdx.License{ID: id}})
		}
	}
	component := func(kind cdx.ComponentType, path, version string) cdx.Component {
		url := "pkg:golang/" + path + "@" + version
		c := cdx.Component{BOMRef: url, Type: kind, Name: path, Version: version, PackageURL: url}
		if l, ok := licences[path]; ok {
			c.Licenses = &l
		}
		return c
	}
	own := cdx.Licenses{{License: &cdx.License{ID: "BSD-3-Clause"}}}
	licences[module], licences[info.Main.Path] = own, own
	main := component(cdx.ComponentTypeApplication, info.Main.Path, info.Main.Version)
	parts := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	refs := []string{parts[0].BOMRef}
	for _, d := range info.Deps {
		version := d.Version
		if version == "(devel)" { // the library, from the workspace: it is of the same commit
			version = info.Main.Version
		}
		parts = append(parts, component(cdx.ComponentTypeLibrary, d.Path, version))
		refs = append(refs, parts[len(parts)-1].BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.when.Format("2006-01-02T15:04:05Z"), Component: &main, Properties: &[]cdx.Property{
		{Name: "holdfast:commit", Value: r.commit}, {Name: "holdfast:platform", Value: p.system + "/" + p.processor},
	}}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// A digests is in-toto's DigestSet.
type digests map[string]string

// A subject is a file that a statement is about, or what it was made from.
type subject struct {
	Name   string  `json:"name,omitempty"`
	URI    string  `json:"uri,omitempty"`
	Digest digests `json:"digest"`
}

// provenance writes how the files were made, as an in-toto statement of SLSA provenance v1. Nobody
// has signed it: it says how to repeat the build, and the sums say whether that gave the same.
func (r *release) provenance(chosen []platform) error {
	var made []subject
	for _, name := range r.made {
		sum, err := r.sum(name)
		if err != nil {
			return err
		}
		made = append(made, subject{Name: name, Digest: digests{"sha256": sum}})
	}
	sums := digests{}
	for _, name := range []string{"go.sum", "cmd/go.sum", "dev/tools/release/go.sum", "dev/tools/release/nfpm/go.sum"} {
		data, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return err
		}
		sums[name] = sha(data)
	}
	var names []string
	for _, p := range chosen {
		names = append(names, p.system+"/"+p.processor)
	}
	repeat := "go -C dev/tools/release run . -commit " + r.commit
	if !slices.Equal(chosen, platforms) {
		repeat += " -platforms " + strings.Join(names, ",")
	}
	if !r.packages {
		repeat += " -packages=false"
	}
	statement := map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": made, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          home + "/tree/main/dev/tools/release",
				"externalParameters": map[string]any{"source": "git+" + home, "commit": r.commit, "platforms": strings.Join(names, ","), "packages": r.packages},
				"internalParameters": map[string]any{
					"signed": false, "go": r.toolsGo, "sourceDateEpoch": r.when.Unix(), "goSums": sums,
					"repeat": repeat,
				},
				"resolvedDependencies": []subject{{URI: "git+" + home, Digest: digests{"gitCommit": r.commit}}},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": home + "/tree/main/dev/tools/release"}},
		},
	}
	text, err := json.MarshalIndent(statement, "", "  ")
	if err != nil {
		return err
	}
	return r.create(fmt.Sprintf("holdfast-%s.provenance.json", r.version), func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
}
