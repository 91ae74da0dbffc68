package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/internal/compare"
	"github.com/holdfast-go/holdfast/cmd/internal/gen"
	"github.com/holdfast-go/holdfast/cmd/internal/lab"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/cmd/internal/prove"
	"github.com/holdfast-go/holdfast/cmd/internal/run"
	"github.com/holdfast-go/holdfast/cmd/internal/usermode"
	"github.com/holdfast-go/holdfast/internal/crash/powercut"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// completeValues lets a shell complete the names that flags and arguments take.
func completeValues(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeFlags(cmd)
		for _, below := range cmd.Commands() {
			completeFlags(below)
		}
	}
}

func completeFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		// Asked at a completion only: every command starts faster than all claims are made.
		// It fails only for a flag that is unknown, or done twice.
		_ = cmd.RegisterFlagCompletionFunc(f.Name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			if values := valuesOf(cmd.Name(), f.Name); values != nil {
				return values, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		})
	})
}

// valuesOf are the values of a command's flag that can be named, or nil.
func valuesOf(command, flag string) []string {
	switch flag {
	case "policy":
		switch command {
		case "copy":
			return []string{"atomic", "sync=never", "sync=close", "sync=each"}
		case "gen":
			return []string{"atomic", "sync=never", "sync=close"}
		}
		return append(texts(sweep.Policies()), "unbuffered", "buffered=64KiB", "periodic=1s", "durable", "eachdurable")
	case "workload":
		return prove.WorkloadNames()
	case "level":
		return []string{"memory", "kill", "fault", "hostile", "power", "all"}
	case "claim":
		return lab.Studies().ClaimNames()
	case "for":
		return advise.PresetNames()
	case "cache":
		return texts(run.CacheStates)
	case "export":
		if command == "advise" {
			return []string{"json"}
		}
		return texts(report.Formats())
	case "part":
		return texts(study.Parts())
	case "fs":
		if command == "prove" {
			return powercut.Kinds
		}
		return place.KindNames(volume.Kinds())
	case "kind":
		return texts(gen.Kinds)
	case "baseline", "save-baseline":
		return compare.BaselineNames()
	case "kernel":
		return []string{usermode.Name}
	}
	return nil
}

func texts[T any](values []T) (all []string) {
	for _, v := range values {
		all = append(all, fmt.Sprint(v))
	}
	return all
}
