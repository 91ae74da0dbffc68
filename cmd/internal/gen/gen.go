// Package gen is the command gen: it makes a file of a given size for measurements.
package gen

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
)

// A generation holds the arguments of gen.
type generation struct {
	file     string // "-" is standard output
	sizeText string
	size     holdfast.Size
	kind     genKind
	seed     uint64
	policy   holdfast.Policy
	force    bool
	quiet    bool
	json     bool
}

// A genKind is a kind of file content.
type genKind string

const (
	genRandom genKind = "random"
	genText   genKind = "text"
	genZero   genKind = "zero"
	genSparse genKind = "sparse" // one hole
)

// Kinds are the kinds of content.
var Kinds = []genKind{genRandom, genSparse, genText, genZero}

func parseGenKind(text string) (genKind, error) {
	if !slices.Contains(Kinds, genKind(text)) {
		return "", fmt.Errorf("%q is not a kind of content; use random, text, zero or sparse", text)
	}
	return genKind(text), nil
}

// atomicPolicy is the policy of --policy atomic, gen's default.
func atomicPolicy() holdfast.Policy {
	return holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}
}

func parseGenPolicy(text string) (holdfast.Policy, error) {
	if text == "atomic" {
		return atomicPolicy(), nil
	}
	return cli.ParsePolicy(text)
}

// New returns the command.
func New() *cobra.Command {
	g := &generation{kind: genRandom, policy: atomicPolicy()}
	cmd := &cobra.Command{
		Use: "gen file size [flags]",
		Long: `Gen makes a file of exactly the given size. 100MB is 100,000,000 bytes, 100MiB is
104,857,600 (gen_rand_file.sh of the published experiments makes 100MiB for 100). A
number without a unit is bytes, and must be 1024 or more; 0 makes an empty file. The
file gets its name when it is complete and synced: after any failure, Ctrl-C, a kill
or a power cut, the path has the complete new file or its earlier content.

Random bytes can't be compressed, and no sequence of eight bytes occurs twice. The
seed that is printed at the end makes the same bytes again, on any machine. The file
name - means standard output, where nothing is synced.`,
		Example: `  holdfast gen source 100MiB
  holdfast gen words.txt 10MiB --kind text --seed 1 --force`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "the file was not made: the error says what remains"}),
		Args:        genArguments,
		RunE:        func(cmd *cobra.Command, args []string) error { return g.run(cmd, args[0], args[1]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.Once("kind", &g.kind, parseGenKind), "kind", "random (the default); text: lines of words, which gzip compresses\nto a third; zero; or sparse: one hole, which takes no room")
	f.Var(cli.Once("number", &g.seed, cli.ParseSeed), "seed", "make the bytes of this seed (default: a new one, which is printed)")
	f.Var(cli.Once("policy", &g.policy, parseGenPolicy), "policy", "when to sync, such as sync=never, or atomic (the default), which is\nsync=close: the file is durable when gen ends")
	f.BoolVar(&g.force, "force", false, "replace an existing file, and keep its permissions")
	f.BoolVar(&g.quiet, "quiet", false, "print only failures: neither progress nor the result")
	f.BoolVar(&g.json, "json", false, "print the result as one JSON object")
	cmd.SetFlagErrorFunc(genFlagError)
	return cmd
}

// genArguments requires a file and a size.
func genArguments(cmd *cobra.Command, args []string) error {
	const hint = "for instance: holdfast gen source 100MB"
	switch len(args) {
	case 0:
		return cli.Misuse(hint, "gen needs a file and a size")
	case 1:
		return cli.Misuse(hint, "gen needs a size too, but only %q was given", args[0])
	case 2:
		return nil
	}
	return cli.Misuse(hint, "gen takes a file and a size, but %d arguments were given", len(args))
}

// genFlagError adds a hint to an unknown flag that may be meant as a size.
func genFlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if letters := unknown.GetSpecifiedShortnames(); letters != "" && unicode.IsDigit(rune(letters[0])) {
			return cli.Misuse("for instance: holdfast gen source 100MB", "-%s: a size can't be negative", letters)
		}
		if unknown.GetSpecifiedName() == "size" {
			return cli.Misuse("the size follows the file: holdfast gen source 100MB", "gen has no flag --size")
		}
	}
	return cli.FlagError(cmd, err)
}

func (g *generation) run(cmd *cobra.Command, file, sizeText string) (err error) {
	g.file, g.sizeText = file, sizeText
	if g.size, err = holdfast.ParseSize(sizeText); err != nil {
		if units, _, ok := strings.Cut(sizeText, "."); ok && units != "" && strings.Trim(units, "0123456789") == "" {
			return cli.Misuse("use a smaller unit: 1500kB, not 1.5MB", "size %q is not a whole number", sizeText)
		}
		if _, turned := holdfast.ParseSize(file); turned == nil {
			return cli.Misuse("the file comes first: holdfast gen source "+file, "%q is not a size, and %q is one", sizeText, file)
		}
		sentence, hint, _ := strings.Cut(cli.PlainText(err), "; ")
		return cli.Misuse(cmp.Or(hint, "no file can be that large"), "%s", sentence)
	}
	// The published script, gen_rand_file.sh, reads a bare number as MiB.
	if g.bare() && 0 < g.size && g.size < holdfast.KiB {
		return cli.Misuse(fmt.Sprintf("give %[1]dB for %[1]d bytes, or %[1]dMiB as gen_rand_file.sh reads %[1]d", int64(g.size)), "size %d has no unit", int64(g.size))
	}
	changed := cmd.Flags().Changed
	if !changed("seed") {
		g.seed = rand.Uint64()
	} else if g.kind == genZero || g.kind == genSparse {
		return cli.Misuse("leave --seed out, or give --kind random or text", "--kind %s makes zeros, so --seed has no meaning", g.kind)
	}
	for _, name := range []string{"policy", "force", "json"} {
		if g.file == "-" && changed(name) {
			return cli.Misuse("leave it out, or name a file", "--%s needs a file, but the bytes go to standard output", name)
		}
	}
	if g.file == "-" {
		if cli.IsTerminal(cmd.OutOrStdout()) {
			return cli.Misuse("name a file, or pipe the output into a program", "standard output is a terminal")
		}
		show := g.progress(cmd.ErrOrStderr())
		done, err := g.fill(cmd.Context(), cli.Bare(cmd.OutOrStdout()), show)
		show.End()
		if err != nil {
			return g.refusal(err, done, "write", "")
		}
		return nil
	}
	show := g.progress(cmd.ErrOrStderr())
	began := time.Now()
	err = g.make(cmd.Context(), show)
	show.End()
	if err != nil || g.quiet {
		return err
	}
	if err := g.print(cmd.OutOrStdout(), time.Since(began)); err != nil {
		return &cli.Refusal{Code: cli.ExitNotMet, Err: &cli.OutputFailure{Err: err}, Hint: fmt.Sprintf("%s is complete; only this result could not be printed", g.file)}
	}
	return nil
}

func (g *generation) progress(stderr io.Writer) *cli.Progress {
	return cli.NewProgress(stderr, g.quiet).OfBytes(int64(g.size))
}

// print prints the result.
func (g *generation) print(w io.Writer, elapsed time.Duration) error {
	if g.json {
		return json.NewEncoder(w).Encode(struct {
			Kind    string          `json:"kind"` // gen
			File    string          `json:"file"`
			Name    []byte          `json:"file_base64,omitempty"`
			Bytes   int64           `json:"bytes"`
			Content genKind         `json:"content"`
			Seed    uint64          `json:"seed"`
			Policy  holdfast.Policy `json:"policy"`
			Durable bool            `json:"durable"`
			Elapsed time.Duration   `json:"elapsed_ns"`
		}{"gen", g.file, cli.NotText(g.file), int64(g.size), g.kind, g.seed, g.policy, g.durable(), elapsed})
	}
	size := g.sizeText // as typed, with its unit
	switch {
	case g.size == 0:
		size = "0B"
	case g.bare():
		size = g.size.String()
	}
	bytes := cli.Grouped(int64(g.size)) + " bytes"
	if g.size >= 1000 {
		bytes += fmt.Sprintf(" (%s, %s)", humanize.DecimalBytes(int64(g.size)), cli.BytesText(int64(g.size))) // like dd
	}
	// For a decimal unit, name the binary unit of the same letter, which is another size.
	if number, decimal := strings.CutSuffix(size, "B"); decimal && number != "" && strings.ContainsAny(number[len(number)-1:], "kMGT") {
		if other, err := holdfast.ParseSize(strings.ToUpper(number) + "iB"); err == nil {
			bytes += fmt.Sprintf("; %siB are %s", strings.ToUpper(number), cli.Grouped(int64(other)))
		}
	}
	content := fmt.Sprintf("%s with seed %d", g.kind, g.seed)
	switch g.kind {
	case genZero:
		content = "zeros"
	case genSparse:
		content = "one hole"
	}
	rate := ""
	if elapsed >= time.Millisecond && g.size > 0 && g.kind != genSparse {
		rate = fmt.Sprintf(", %s/s", cli.BytesText(int64(float64(g.size)/elapsed.Seconds())))
	}
	durable := "durable"
	if !g.durable() {
		durable = "not synced: the kernel writes it within about half a minute"
	}
	return cli.WriteLocal(w, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "File '%s' with size %s generated: %s.\n%s, in %v%s; %s\n", cli.OneLine(g.file), size, bytes,
			content, elapsed.Round(time.Microsecond*10), rate, durable)
		return err
	})
}

// bare reports whether the size was given without a unit.
func (g *generation) bare() bool { return strings.Trim(g.sizeText, "0123456789") == "" }

func (g *generation) durable() bool { return g.policy.Sync.Mode != holdfast.SyncNever }
