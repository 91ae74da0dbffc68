package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "show the version of holdfast",
		Long:  "Version shows which holdfast this is: its version, the commit it was built\nfrom where that is known, the Go release and the system.",
		Example: `  holdfast version
  holdfast version --help`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s, %s, %s/%s\n", program(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// program is the name and the version, as far as the build has recorded it.
func program() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "holdfast (version unknown)"
	}
	name := "holdfast " + info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			name += " " + s.Value[:min(12, len(s.Value))]
		}
		if s.Key == "vcs.modified" && s.Value == "true" {
			name += " modified"
		}
	}
	return name
}
