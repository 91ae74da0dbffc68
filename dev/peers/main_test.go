package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

func TestEveryKindIsListedAndHasHelp(t *testing.T) {
	var list bytes.Buffer
	if err := command.Run(t.Context(), kinds, []string{"--help"}, &list, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if !strings.Contains(list.String(), "  "+k.Name+" ") {
			t.Errorf("%s is not listed:\n%s", k.Name, &list)
		}
		var help bytes.Buffer
		err := command.Run(t.Context(), kinds, []string{k.Name, "-help"}, io.Discard, &help)
		if command.ExitCode(err) != 0 || !strings.Contains(help.String(), "-dir") {
			t.Errorf("%s -help: %v\n%s", k.Name, err, &help)
		}
		for _, wrong := range []string{"-nosuch", "more"} {
			err := command.Run(t.Context(), kinds, []string{k.Name, wrong}, io.Discard, io.Discard)
			if command.ExitCode(err) != command.ExitUsage || !strings.Contains(err.Error(), "see -help") {
				t.Errorf("%s %s: %v", k.Name, wrong, err)
			}
		}
	}
}

// TestPeersOfTheClaimsAreListed looks for them in the help.
func TestPeersOfTheClaimsAreListed(t *testing.T) {
	var list bytes.Buffer
	if err := command.Run(t.Context(), kinds, nil, &list, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, peer := range []string{"bufio", "filestream", "readahead", "raft-wal", "tidwall", "badger", "bbolt", "SQLite", "pebble", "pools of 2 and 64", "os.WriteFile", "limits"} {
		if !strings.Contains(list.String(), peer) {
			t.Errorf("no %s in:\n%s", peer, &list)
		}
	}
}
