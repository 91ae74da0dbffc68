package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/filler"
)

// A generation is what the arguments of gen say.
type generation struct {
	file     string // - is standard output
	sizeText string
	size     holdfast.Size
	kind     genKind
	seed     uint64
	policy   holdfast.Policy
	force    bool
	quiet    bool
	json     bool
}

// A genKind is how a file is filled.
type genKind string

const (
	genRandom genKind = "random"
	genText   genKind = "text"
	genZero   genKind = "zero"
	genSparse genKind = "sparse" // one hole
)

// fillers are the bytes of each kind.
var fillers = map[genKind]filler.Kind{genRandom: filler.Random, genText: filler.Text, genZero: filler.Zero, genSparse: filler.Zero}

func parseGenKind(text string) (genKind, error) {
	if _, ok := fillers[genKind(text)]; !ok {
		return "", fmt.Errorf("%q is no kind of bytes; use random, text, zero or sparse", text)
	}
	return genKind(text), nil
}

// atomicPolicy is what --policy atomic and gen's default stand for.
func atomicPolicy() holdfast.Policy { return holdfast.Policy{Sync: holdfast.SyncClose} }

func parseGenPolicy(text string) (holdfast.Policy, error) {
	if text == "atomic" {
		return atomicPolicy(), nil
	}
	return holdfast.ParsePolicy(text)
}

func newGen() *cobra.Command {
	g := &generation{kind: genRandom, policy: atomicPolicy()}
	cmd := &cobra.Command{
		Use:   "gen file size [flags]",
		Short: "make a file of a size to measure with: random bytes, text, zeros or a hole",
		Long: `Gen makes a file of exactly so many bytes. 10MB is 10,000,000 bytes, 10MiB is
10,485,760, and a bare number is bytes; 0 makes an empty file. The file gets its
name when it is whole and synced: whatever fails, and after Ctrl-C, a kill or a power
cut, there is the whole new file or what was there before.

Random bytes can't be compressed, and no eight of them come twice. The seed that
is told at the end makes the same bytes again, on any machine. A file of - is
standard output, where nothing is synced.`,
		Example: `  holdfast gen source 100MB
  holdfast gen words.txt 10MiB --kind text --seed 1 --force`,
		Args: genArguments,
		RunE: func(cmd *cobra.Command, args []string) error { return g.run(cmd, args[0], args[1]) },
	}
	g.addFlags(cmd)
	cmd.SetFlagErrorFunc(genFlagError)
	return cmd
}

func (g *generation) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(once("kind", &g.kind, parseGenKind), "kind", "random (the default); text: lines of words, which gzip makes 3.3 times\nas short; zero; or sparse: one hole, which takes no room")
	f.Var(once("number", &g.seed, parseSeed), "seed", "make the bytes of this seed (default: a new one, which is told)")
	f.Var(once("policy", &g.policy, parseGenPolicy), "policy", "when bytes reach the disk, such as sync=never, or atomic, which is\nsync=close (the default): all is durable when gen ends")
	f.BoolVar(&g.force, "force", false, "replace a file that is there, and keep its permissions")
	f.BoolVar(&g.quiet, "quiet", false, "tell failures only: neither progress nor what was made")
	f.BoolVar(&g.json, "json", false, "tell what was made as one JSON object")
}

// genArguments wants a file and a size.
func genArguments(cmd *cobra.Command, args []string) error {
	const hint = "for instance: holdfast gen source 100MB"
	switch len(args) {
	case 0:
		return misuse(hint, "gen needs a file and a size")
	case 1:
		return misuse(hint, "gen needs a size too, and only %q was given", args[0])
	case 2:
		return nil
	}
	return misuse(hint, "gen makes one file of one size, and %d arguments were given", len(args))
}

// genFlagError knows that what looks like a flag may be meant for a size.
func genFlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if letters := unknown.GetSpecifiedShortnames(); letters != "" && unicode.IsDigit(rune(letters[0])) {
			return misuse("for instance: holdfast gen source 100MB", "-%s: a size can't be negative", letters)
		}
	}
	return flagError(cmd, err)
}

// parseGenSize is ParseSize with a sentence for fractions.
func parseGenSize(text string) (holdfast.Size, error) {
	size, err := holdfast.ParseSize(text)
	if err == nil {
		return size, nil
	}
	if whole, _, ok := strings.Cut(text, "."); ok && whole != "" && strings.Trim(whole, "0123456789") == "" {
		return 0, misuse("take a smaller unit: 1500kB and not 1.5MB", "size %q is a fraction", text)
	}
	sentence, hint, _ := strings.Cut(plainText(err), "; ")
	return 0, misuse(cmp.Or(hint, "no file can be as large as that"), "%s", sentence)
}

func (g *generation) run(cmd *cobra.Command, file, sizeText string) (err error) {
	g.file, g.sizeText = file, sizeText
	if g.size, err = parseGenSize(sizeText); err != nil {
		return err
	}
	if !cmd.Flags().Changed("seed") {
		g.seed = rand.Uint64()
	}
	if err := g.check(cmd.Flags()); err != nil {
		return err
	}
	if g.file == "-" {
		return g.toStdout(cmd)
	}
	show := g.meter(cmd.ErrOrStderr())
	began := time.Now()
	err = g.make(cmd.Context(), show)
	show.end()
	if err != nil || g.quiet {
		return err
	}
	if err := g.print(cmd.OutOrStdout(), time.Since(began)); err != nil {
		return &refusal{exitNotMet, &outputFailure{err}, fmt.Sprintf("%s is whole, only that is not told", g.file)}
	}
	return nil
}

// check refuses flags that would change nothing.
func (g *generation) check(f *pflag.FlagSet) error {
	if f.Changed("seed") && (g.kind == genZero || g.kind == genSparse) {
		return misuse("leave --seed out, or give --kind random or text", "--kind %s is zeros, whatever --seed is", g.kind)
	}
	for _, name := range []string{"policy", "force", "json"} {
		if g.file == "-" && f.Changed(name) {
			return misuse("leave it out, or name a file", "--%s is of a file, and the bytes go to standard output", name)
		}
	}
	return nil
}

func (g *generation) meter(stderr io.Writer) *meter {
	return newMeter(stderr, int64(g.size), g.quiet)
}

// toStdout writes the bytes to standard output, and tells nothing of them there.
func (g *generation) toStdout(cmd *cobra.Command) error {
	if isTerminal(cmd.OutOrStdout()) {
		return misuse("give a file, or a program that reads it, behind a |", "standard output is a terminal")
	}
	show := g.meter(cmd.ErrOrStderr())
	done, err := g.fill(cmd.Context(), cmd.OutOrStdout(), show)
	show.end()
	if err != nil {
		return g.refusal(err, done, "write", "")
	}
	return nil
}

// print tells what was made.
func (g *generation) print(w io.Writer, elapsed time.Duration) error {
	if g.json {
		return json.NewEncoder(w).Encode(struct {
			Kind    string          `json:"kind"` // gen
			File    string          `json:"file"`
			Bytes   int64           `json:"bytes"`
			Content genKind         `json:"content"`
			Seed    uint64          `json:"seed"`
			Policy  holdfast.Policy `json:"policy"`
			Durable bool            `json:"durable"`
			Elapsed time.Duration   `json:"elapsed_ns"`
		}{"gen", g.file, int64(g.size), g.kind, g.seed, g.policy, g.durable(), elapsed})
	}
	_, err := fmt.Fprintf(w, "File '%s' with size %s generated.\n%s bytes, %s, in %v%s; %s\n", g.file, g.shownSize(),
		humanize.Comma(int64(g.size)), g.content(), elapsed.Round(time.Microsecond*10), g.rate(elapsed), g.durableText())
	return err
}

// shownSize is the size as it was typed if that had a unit.
func (g *generation) shownSize() string {
	switch {
	case g.size == 0:
		return "0B"
	case strings.Trim(g.sizeText, "0123456789") != "":
		return g.sizeText
	}
	return g.size.String()
}

func (g *generation) content() string {
	switch g.kind {
	case genZero:
		return "zeros"
	case genSparse:
		return "one hole"
	}
	return fmt.Sprintf("%s of seed %d", g.kind, g.seed)
}

func (g *generation) rate(elapsed time.Duration) string {
	if elapsed < time.Millisecond || g.size == 0 || g.kind == genSparse {
		return ""
	}
	return fmt.Sprintf(", %s/s", bytesText(int64(float64(g.size)/elapsed.Seconds())))
}

func (g *generation) durable() bool { return g.policy.Sync != holdfast.SyncNever }

func (g *generation) durableText() string {
	if g.durable() {
		return "durable"
	}
	return "not synced: the kernel writes it within about half a minute"
}
