package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// accepted are the licences that what the command links may have, each with words that only its text
// has. Each allows binaries of anybody, and asks for its text. Another one is a decision to be made
// here first.
var accepted = []struct{ id, words string }{
	{"0BSD", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted. the software"},
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"BSD-3-Clause", "may be used to endorse or promote products derived from this software without specific prior written permission"},
	{"BSD-2-Clause", "redistribution and use in source and binary forms, with or without modification, are permitted"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"OFL-1.1", "sil open font license version 1.1"},
	{"Unlicense", "this is free and unencumbered software released into the public domain"},
}

// additional are names of files that grant more, beside a licence.
var additional = regexp.MustCompile(`(?i)^(notice|patents)`)

// A linked is a module that the command links, or a directory of this one with things of others.
type linked struct {
	path  string
	texts []file // its licences, by their paths in it
}

var licenceName = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|notice|patents|ofl)([._-].*)?$|[._-]licen[cs]e(\.txt)?$`)

// noticeOf returns what NOTICE has to say for the command on some platforms.
func noticeOf(root string, platforms []platform) (string, error) {
	modules, err := linkedModules(root, platforms)
	if err != nil {
		return "", err
	}
	own, err := embedded(root)
	if err != nil {
		return "", err
	}
	goroot, err := command("", "go", "env", "GOROOT")
	if err != nil {
		return "", err
	}
	library := linked{path: "the Go standard library"}
	if library.texts, err = licencesIn(goroot, goroot); err != nil {
		return "", err
	}
	var list, texts strings.Builder
	seen := map[string]string{} // a text, and where it stands
	for _, m := range slices.Concat([]linked{library}, modules, own) {
		ids, err := m.licences()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&list, "  %s (%s)\n", m.path, strings.Join(ids, ", "))
		for _, text := range m.texts {
			name, words := m.path+", "+text.name, strings.Join(strings.Fields(string(text.data)), " ")
			fmt.Fprintf(&texts, "\n%s\n%s\n\n", strings.Repeat("=", 80), name)
			if first, ok := seen[words]; ok {
				fmt.Fprintf(&texts, "The same as that of %s.\n", first)
				continue
			}
			seen[words] = name
			for line := range strings.Lines(strings.TrimSpace(strings.ReplaceAll(string(text.data), "\r\n", "\n")) + "\n") {
				texts.WriteString(strings.TrimRight(line, " \t\n\f") + "\n")
			}
		}
	}
	return "holdfast has the licence in the file LICENSE. The command holdfast links code of others too, on one\n" +
		"platform or another. Their licences follow. The library links the Go standard library and\n" +
		"golang.org/x/sys alone. This file is made by: go -C dev/tools/release run . -notice\n\n" + list.String() + texts.String(), nil
}

// linkedModules returns the modules besides ours that the command of root links on these platforms,
// sorted by their paths.
func linkedModules(root string, platforms []platform) ([]linked, error) {
	const shown = `{{with .Module}}{{if not .Main}}{{.Path}}	{{.Dir}}	{{$.Dir}}{{end}}{{end}}`
	texts := map[string][]file{}
	for _, p := range platforms {
		cmd := exec.Command("go", "list", "-deps", "-f", shown, "./cmd/holdfast")
		cmd.Dir, cmd.Stderr = root, os.Stderr
		cmd.Env = append(os.Environ(), "GOOS="+p.system, "GOARCH="+p.processor, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s/%s: %w", p.system, p.processor, err)
		}
		for line := range strings.Lines(string(out)) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			if len(fields) != 3 {
				continue
			}
			found, err := licencesIn(fields[1], fields[2])
			if err != nil {
				return nil, err
			}
			texts[fields[0]] = append(texts[fields[0]], found...)
		}
	}
	var modules []linked
	for module, found := range texts {
		modules = append(modules, linked{module, unique(found)})
	}
	slices.SortFunc(modules, func(a, b linked) int { return cmp.Compare(a.path, b.path) })
	return modules, nil
}

func unique(files []file) []file {
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return slices.CompactFunc(files, func(a, b file) bool { return a.name == b.name })
}

// licencesIn returns the licences in a directory and in those above it, up to and with top.
func licencesIn(top, dir string) (found []file, err error) {
	for {
		names, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, d := range names {
			if !d.Type().IsRegular() || !licenceName.MatchString(d.Name()) || filepath.Ext(d.Name()) == ".go" {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, d.Name()))
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(top, filepath.Join(dir, d.Name()))
			if err != nil {
				return nil, err
			}
			found = append(found, file{filepath.ToSlash(name), 0, data})
		}
		if dir == top || dir == filepath.Dir(dir) {
			return found, nil
		}
		dir = filepath.Dir(dir)
	}
}

// embedded returns what of others lies in this module itself: each directory below the root that has a licence.
func embedded(root string) (own []linked, err error) {
	err = filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || dir == root {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "dist" {
			return filepath.SkipDir
		}
		found, err := licencesIn(dir, dir)
		if len(found) > 0 {
			name, _ := filepath.Rel(root, dir)
			own = append(own, linked{filepath.ToSlash(name), found})
		}
		return err
	})
	return own, err
}

// licences names the licences of a module as SPDX does. One that has none, or one that is not accepted, is an error.
func (l linked) licences() (ids []string, err error) {
	for _, text := range l.texts {
		words, known := strings.ToLower(strings.Join(strings.Fields(string(text.data)), " ")), false
		for _, a := range accepted {
			if !strings.Contains(words, a.words) || a.id == "BSD-2-Clause" && known {
				continue // the one with three clauses has the words of the other
			}
			known = true
			if !slices.Contains(ids, a.id) {
				ids = append(ids, a.id)
			}
		}
		if !known && !additional.MatchString(path.Base(text.name)) {
			return nil, fmt.Errorf("%s: %s is no licence that may be linked; notice.go has those", l.path, text.name)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s: no licence; it has the files %v", l.path, names(l.texts))
	}
	slices.Sort(ids)
	return ids, nil
}

func names(files []file) (names []string) {
	for _, f := range files {
		names = append(names, f.name)
	}
	return names
}
