package tree

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/volume"
	"github.com/holdfast-go/holdfast/wal"
)

var update = flag.Bool("update", false, "rewrite the generated parts of README.md, and tidy the modules")

// goDirs returns the directories of all modules here that hold Go code.
func goDirs(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if dir := filepath.Dir(path); strings.HasSuffix(path, ".go") && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// parseDir reads a directory's Go files for every system, without the tests.
func parseDir(t *testing.T, dir string) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	set, files := token.NewFileSet(), map[string]*ast.File{}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
	}
	return set, files
}

func TestEveryPackageHasOnePackageComment(t *testing.T) {
	for _, dir := range goDirs(t) {
		_, files := parseDir(t, dir)
		var with []string
		for name, file := range files {
			if file.Doc != nil {
				with = append(with, name)
			}
		}
		if len(files) > 0 && len(with) != 1 {
			slices.Sort(with)
			t.Errorf("%s has %d package comments %v, want one", dir, len(with), with)
		}
	}
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	for _, dir := range goDirs(t) {
		if first, _, _ := strings.Cut(filepath.ToSlash(dir), "/"); first == "cmd" || first == "dev" || first == "internal" {
			continue
		}
		set, files := parseDir(t, dir)
		for _, file := range files {
			for _, d := range file.Decls {
				for _, name := range undocumented(d) {
					t.Errorf("%v: %s has no comment", set.Position(name.Pos()), name.Name)
				}
			}
		}
	}
}

// undocumented returns the exported names that a declaration leaves without a
// comment of their own or of their group.
func undocumented(d ast.Decl) (names []*ast.Ident) {
	if f, ok := d.(*ast.FuncDecl); ok {
		// The method Error of an error type needs no comment.
		if f.Doc == nil && f.Name.IsExported() && f.Name.Name != "Error" && exportedReceiver(f) {
			names = append(names, f.Name)
		}
		return names
	}
	group := d.(*ast.GenDecl)
	for _, s := range group.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Doc == nil && group.Doc == nil && s.Name.IsExported() {
				names = append(names, s.Name)
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if s.Doc == nil && s.Comment == nil && group.Doc == nil && n.IsExported() {
					names = append(names, n)
				}
			}
		}
	}
	return names
}

// exportedReceiver reports whether users can see the type of a method. A
// function has no such type.
func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	name, ok := receiver.(*ast.Ident)
	return !ok || name.IsExported()
}

// readme returns README.md with line feeds only.
func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}

// holdSection compares the text between two markers in README.md with the expected text; -update
// writes it.
func holdSection(t *testing.T, name, want string) {
	t.Helper()
	text := readme(t)
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(text, begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md lacks the markers %q and %q", begin, end)
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("README.md has between the markers of %q:\n%s\nwant (go test -C dev ./tree -run '%s' -update writes it):\n%s", name, got, t.Name(), want)
	}
	if err := os.WriteFile("README.md", []byte(before+begin+want+end+after), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestReadmeReportsWhatEachPolicyLoses(t *testing.T) {
	var table strings.Builder
	table.WriteString("| named policy | its text | lost when the process crashes | lost at a power cut |\n|---|---|---|---|\n")
	for _, named := range []struct {
		name   string
		policy holdfast.Policy
	}{
		{"Unbuffered()", holdfast.Unbuffered()},
		{"Buffered(64 * KiB)", holdfast.Buffered(64 * holdfast.KiB)},
		{"Periodic(time.Second)", holdfast.Periodic(time.Second)},
		{"Durable()", holdfast.Durable()},
		{"EachDurable()", holdfast.EachDurable()},
	} {
		loss := named.policy.Loss()
		fmt.Fprintf(&table, "| `%s` | `%v` | %v | %v |\n", named.name, named.policy, loss.Process, loss.Power)
	}
	holdSection(t, "policies", table.String())
}

// notRun are the beginnings of shown commands that no test runs, with why.
var notRun = map[string]string{
	"./check":    "it runs this test",
	"go test":    "it runs this test",
	"go get ":    "it changes the module and needs the network",
	"go install": "it needs the network",
	"git clone":  "it needs the network",
	"cd ":        "each command runs in a directory of the test",

	"sha256sum --check --ignore-missing SHA256SUMS": "it needs a release",
	"dpkg -i holdfast-VERSION-":                     "it needs a release, and installs it",
	"rpm -i holdfast-VERSION-":                      "it needs a release, and installs it",
	"podman ":                                       "it needs a release, and podman",
	"go -C dev/tools run ./wineprefix ":             "check runs it, where wine is",
	"GOOS=windows go test ":                         "check runs it, where wine is",
	"go -C dev/tools/release run . -commit ":        "TestTwoReleasesAreEqual runs it, twice",
	"go run -C dev/peers . rotate":                  "it needs modules of others, and takes minutes",
}

// quickly is put behind each shown bench: the command as it stands takes its 50 s. Where
// it names no policies, twoPolicies are named: TestReadmeShowsBench runs the usual ones.
// And adviseQuickly behind each advise that measures, auditQuickly behind audit, proveQuickly behind prove.
const (
	quickly       = " --rounds 1 --time 1s"
	twoPolicies   = " --writers 1 --policy buffer=64KiB --policy sync=group"
	linesQuickly  = " --count 10"
	adviseQuickly = " --time 1s"
	auditQuickly  = " --time 1s --claim files-create"
	proveQuickly  = " --time 1ms --states 1000 --policy durable --workload writer"
)

func TestReadmeCommandsRun(t *testing.T) {
	t.Parallel()
	commands := shownCommands(readme(t))
	if len(commands) < 2 {
		t.Fatalf("README.md shows %d commands in sh blocks, want two or more", len(commands))
	}
	runCommands(t, buildHoldfast(t), append([]string{eventsMade}, commands...))
}

// TestCommandsOfPagesRun runs what the pages of the commands show.
func TestCommandsOfPagesRun(t *testing.T) {
	t.Parallel()
	binary := buildHoldfast(t)
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := false
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		commands := shownCommands(string(text))
		if len(commands) == 0 {
			continue
		}
		shown = true
		runCommands(t, binary, append([]string{eventsMade, photosMade, "mkdir results", "holdfast bench -o results.jsonl"}, commands...))
	}
	if !shown {
		t.Error("no page shows a command in an sh block")
	}
}

// shownCommands returns the commands in the sh blocks of a page.
func shownCommands(page string) (commands []string) {
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		commands = append(commands, commandLines(block[1])...)
	}
	return commands
}

// eventsMade makes the files that the examples of write and copy read.
const eventsMade = `printf '1,a,x\n2,b,y\n' > events.csv && printf 'one\ntwo\n' > events.log && cp events.log events.jsonl && mkdir -p logs`

// photosMade makes the directories that the examples of copy name.
const photosMade = "mkdir -p photos/old backup && touch photos/old/1.jpg"

// madeBefore makes the files and the baseline that the examples name.
var madeBefore = []string{
	"holdfast bench --writers 1 --policy buffer=64KiB --policy sync=group --save-baseline main -o before.jsonl",
	"cp before.jsonl after.jsonl",
	"mkdir results && cp before.jsonl results",
	eventsMade,
	photosMade,
}

func TestHelpExamplesRun(t *testing.T) {
	t.Parallel()
	binary := buildHoldfast(t)
	helps := [][]string{{"--help"}}
	for _, name := range subcommands(t, binary) {
		helps = append(helps, []string{name, "--help"})
	}
	commands := slices.Clone(madeBefore)
	for _, args := range helps {
		shown := helpExamples(t, binary, args)
		if len(shown) < 2 {
			t.Errorf("holdfast %s shows %d examples, want two", strings.Join(args, " "), len(shown))
		}
		commands = append(commands, shown...)
	}
	runCommands(t, binary, commands)
}

// commandLines returns the commands in a block of shell, without prompts, notes
// and empty lines.
func commandLines(block string) (commands []string) {
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, " #")
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if line != "" && !strings.HasPrefix(line, "#") {
			commands = append(commands, line)
		}
	}
	return commands
}

// subcommands asks the command's own completion for their names.
func subcommands(t *testing.T, binary string) (names []string) {
	t.Helper()
	out, err := exec.Command(binary, "__complete", "").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		name, _, ok := strings.Cut(line, "\t")
		if ok && name != "help" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("holdfast has no commands:\n%s", out)
	}
	return names
}

// helpExamples returns the commands under "Examples:" of a help.
func helpExamples(t *testing.T, binary string, args []string) (commands []string) {
	t.Helper()
	out, err := exec.Command(binary, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("holdfast %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	_, examples, _ := strings.Cut(string(out), "Examples:\n")
	for line := range strings.Lines(examples) {
		if strings.TrimSpace(line) == "" {
			break
		}
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if strings.HasPrefix(line, "holdfast") {
			commands = append(commands, line)
		}
	}
	return commands
}

// built is the command, in a directory that is removed when all tests have ended.
var built = sync.OnceValues(func() (binary string, err error) {
	binary = filepath.Join(made, "holdfast")
	out, err := exec.Command("go", "build", "-o", binary, "./cmd/holdfast").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build ./cmd/holdfast: %w\n%s", err, out)
	}
	return binary, err
})

// buildHoldfast builds the command, once for all tests.
func buildHoldfast(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the command many times; not with -short")
	}
	if runtime.GOOS == "windows" {
		t.Skip("the shown commands are for a Unix shell")
	}
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

var outputFlag = regexp.MustCompile(`(?:-o|--output)[ =](\S+)`)

// runCommands runs shown commands one after the other in one directory, so that a
// later one finds what an earlier one wrote.
func runCommands(t *testing.T, binary string, commands []string) {
	dir := t.TempDir()
	if slices.ContainsFunc(commands, func(c string) bool { return strings.HasPrefix(c, "holdfast wal ") }) {
		log, _, err := wal.Open(filepath.Join(dir, "log"), wal.Options{})
		if err == nil {
			_, err = log.Append([]byte("a record"))
			err = errors.Join(err, log.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	caches := goCaches(t)
	notMade := map[string]string{} // results, with why no command made them
	skip := func(shown, why string) {
		t.Run(shown, func(t *testing.T) { t.Skip(why) })
		for _, output := range outputFlag.FindAllStringSubmatch(shown, -1) {
			notMade[output[1]] = why
		}
	}
	for _, shown := range commands {
		if why, ok := whyNotRun(shown); ok {
			t.Logf("not run: %s: %s", shown, why)
			continue
		}
		command := runnable(shown)
		if i := slices.IndexFunc(strings.Fields(command), func(word string) bool { return notMade[word] != "" }); i >= 0 {
			skip(shown, notMade[strings.Fields(command)[i]])
			continue
		}
		// Results are never overwritten, and each example is on its own.
		for _, output := range outputFlag.FindAllStringSubmatch(command, -1) {
			os.Remove(filepath.Join(dir, output[1]))
		}
		a, err := runShown(command, dir, func(dir string) *exec.Cmd {
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir = dir
			// Baselines are kept in the user's cache. Go's own stays, or the library of Go would be compiled anew.
			cmd.Env = append(slices.Concat(os.Environ(), caches), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
			return cmd
		})
		out := string(a.stderr) + string(a.stdout)
		if why := lacking(command, err, out); why != "" {
			skip(shown, why)
			continue
		}
		if !answered(command, err) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

// An answer is the output of a command that several pages show, and the directory with the files that the command wrote.
type answer struct {
	once           sync.Once
	dir            string
	stdout, stderr []byte
	err            error
}

// answers are by the command, as it runs.
var answers sync.Map

// runShown runs a command in a directory. One that measures or proves, and reads no file, answers alike on each page,
// and takes seconds: it runs once for all of them, and each gets a copy of the files that it names.
func runShown(command, dir string, in func(dir string) *exec.Cmd) (*answer, error) {
	run := func(a *answer) {
		var stdout, stderr bytes.Buffer
		cmd := in(a.dir)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		a.err = cmd.Run()
		a.stdout, a.stderr = stdout.Bytes(), stderr.Bytes()
	}
	if !readsNothing(command) {
		a := &answer{dir: dir}
		run(a)
		return a, a.err
	}
	value, _ := answers.LoadOrStore(command, &answer{})
	a := value.(*answer)
	a.once.Do(func() {
		if a.dir, a.err = os.MkdirTemp(made, "answer-"); a.err == nil {
			run(a)
		}
	})
	err := a.err
	for _, output := range outputFlag.FindAllStringSubmatch(command, -1) {
		data, missing := os.ReadFile(filepath.Join(a.dir, output[1]))
		if missing == nil {
			missing = os.WriteFile(filepath.Join(dir, output[1]), data, 0o666)
		}
		err = cmp.Or(err, missing)
	}
	return a, err
}

// readsNothing reports whether a command measures or proves, alone, from nothing but its flags.
func readsNothing(command string) bool {
	words := strings.Fields(outputFlag.ReplaceAllString(command, ""))
	return len(words) > 1 && words[0] == "holdfast" && slices.Contains([]string{"bench", "advise", "audit", "prove"}, words[1]) &&
		!slices.ContainsFunc(words, func(word string) bool {
			return strings.Contains(word, ".jsonl") || slices.Contains([]string{"|", ">", "--baseline", "--save-baseline", "--against", "--cmd"}, word)
		})
}

// goCaches are the variables that name what go keeps in the user's home.
func goCaches(t *testing.T) (variables []string) {
	t.Helper()
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		variables = append(variables, name+"="+strings.TrimSpace(string(out)))
	}
	return variables
}

func whyNotRun(command string) (why string, ok bool) {
	for beginning, why := range notRun {
		if strings.HasPrefix(command, beginning) {
			return why, true
		}
	}
	return "", false
}

// runnable turns a shown command into one that runs the binary on the PATH, in
// the test's directory and in a short time.
func runnable(command string) string {
	command = strings.Replace(command, "go run ./cmd/holdfast", "holdfast", 1)
	if root, err := os.Getwd(); err == nil { // the tests run in the clone
		command = strings.Replace(command, "go build -o logger ", `go build -C "`+root+`" -o "$PWD/logger" `, 1)
	}
	command = regexp.MustCompile(`--dir \S+`).ReplaceAllString(command, "--dir .")
	command = strings.Replace(command, "--against ./old", "--against holdfast", 1) // the other build is this one
	if strings.Contains(command, "--help") {
		return command
	}
	switch {
	case strings.HasPrefix(command, "holdfast bench"), strings.HasPrefix(command, "holdfast study lines"), strings.HasPrefix(command, "holdfast study copy"):
		// Behind the flags and before what the shell does with the output.
		end := min(strings.IndexAny(command+"|", "|>"), len(command))
		flags := quickly
		switch {
		case strings.HasPrefix(command, "holdfast study lines"):
			flags += linesQuickly
		case strings.HasPrefix(command, "holdfast study"):
		case !strings.Contains(command, "--policy"):
			flags += twoPolicies
		}
		command = strings.TrimSpace(command[:end]) + flags + " " + command[end:]
	case strings.HasPrefix(command, "holdfast prove") && !strings.Contains(command, "--cmd") && !strings.Contains(command, "--eio") && !strings.Contains(command, "--trace"):
		command = regexp.MustCompile(` --time \d+s`).ReplaceAllString(command, "") + proveQuickly // which names a time
	case strings.HasPrefix(command, "holdfast audit") && !strings.Contains(command, "--list"):
		command += auditQuickly
	case strings.HasPrefix(command, "holdfast serve"): // it ends when it is stopped; another program may have the shown port
		command = regexp.MustCompile(`(127\.0\.0\.1):\d+`).ReplaceAllString(command, "$1:0")
		command = "rm -f address; " + command + " > address & serving=$!; n=300; until [ -s address ] || [ $((n-=1)) = 0 ]; do sleep 0.1; done; kill $serving; wait $serving"
	case strings.HasPrefix(command, "holdfast advise") && !strings.Contains(command, ".jsonl"):
		command += adviseQuickly
	}
	return command
}

// answered reports whether a shown command did its work. Exit code 1 of advise means that no policy meets
// the need, 4 that this is not known. Both depend on the disk. So does fleet of hosts. In a short time on a
// busy machine prove says with 4 that it is not known if a policy held.
func answered(command string, err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err == nil
	}
	verb := strings.Fields(command + " -")[1]
	return exit.ExitCode() == 4 && slices.Contains([]string{"advise", "fleet", "prove"}, verb) || exit.ExitCode() == 1 && slices.Contains([]string{"advise", "fleet"}, verb)
}

// lacking returns what a command needs that is not here, as it says itself: root's
// rights, programs that make file systems, or a kernel. Empty is nothing.
func lacking(command string, err error, out string) string {
	cannot := func(begins string) bool { return strings.HasPrefix(out, "holdfast: "+begins) }
	if err == nil || !cannot("--fs: ") && !cannot("--kernel ") && !cannot("level power is not possible on ") {
		return ""
	}
	kinds, err := volume.Parse("ext4")
	if err == nil && kinds[0].Can() == nil && !strings.Contains(command, "--kernel") {
		return "" // it can be had
	}
	why, _, _ := strings.Cut(out, "\n")
	return why
}

func TestRunnableKeepsWhatIsShown(t *testing.T) {
	check := func(in, want string) {
		t.Helper()
		if got := strings.TrimSpace(runnable(in)); got != want {
			t.Errorf("runnable(%q) = %q, want %q", in, got, want)
		}
	}
	check("go run ./cmd/holdfast version", "holdfast version")
	check("holdfast bench --dir /var/lib", "holdfast bench --dir ."+quickly+twoPolicies)
	check("holdfast bench -o a.jsonl | tail", "holdfast bench -o a.jsonl"+quickly+twoPolicies+" | tail")
	check("holdfast bench --policy sync=group", "holdfast bench --policy sync=group"+quickly)
	check("holdfast study lines", "holdfast study lines"+quickly+linesQuickly)
	check("holdfast study copy --part C", "holdfast study copy --part C"+quickly)
	check("holdfast bench --help", "holdfast bench --help")
	check("holdfast advise --for etcd --dir /var/lib", "holdfast advise --for etcd --dir ."+adviseQuickly)
	check("holdfast advise --need 'loss<=1s' a.jsonl", "holdfast advise --need 'loss<=1s' a.jsonl")
	check("go run ./cmd/holdfast prove --level memory --time 20s", "holdfast prove --level memory"+proveQuickly)
}

func TestWhatReadsNothingRunsOnce(t *testing.T) {
	check := func(command string, want bool) {
		t.Helper()
		if got := readsNothing(command); got != want {
			t.Errorf("readsNothing(%q) = %v", command, got)
		}
	}
	check("holdfast bench -o results.jsonl"+quickly, true)
	check("holdfast advise --need 'loss<=1s,rate>=50k/s' --record 200B", true)
	check("holdfast audit"+auditQuickly, true)
	check("holdfast prove"+proveQuickly, true)
	check("holdfast advise --need 'loss<=1s' results.jsonl", false)
	check("holdfast bench --baseline main", false)
	check("holdfast bench --save-baseline main -o before.jsonl", false)
	check("holdfast advise --for etcd --export openmetrics > holdfast.prom", false)
	check("holdfast prove --time 1s --cmd 'echo ack 1' --", false)
	check("holdfast report results.jsonl", false)
	check("sh", false)
}

// TestLinksLeadSomewhere follows the links among the pages, also to a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := exec.Command("git", "ls-files", "*.md").Output()
	if err != nil {
		t.Skip("not a clone of the repository:", err)
	}
	link := regexp.MustCompile(`\]\(([^)#: ]*)(?:#([^) ]+))?\)`)
	found := 0
	for page := range strings.FieldsSeq(string(pages)) {
		text, err := os.ReadFile(page)
		if err != nil || strings.Contains(page, "testdata/") {
			continue // removed and not committed yet, or a golden file
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			found++
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), m[1])
			}
			there, err := os.ReadFile(to)
			if _, is := os.Stat(to); is != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			} else if m[2] != "" && (err != nil || !slices.Contains(anchors(string(there)), m[2])) {
				t.Errorf("%s links to #%s of %s, which has no such heading", page, m[2], to)
			}
		}
	}
	if found == 0 {
		t.Error("no links found")
	}
}

// anchors returns what the headings of a page are called in links.
func anchors(page string) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// testFiles returns the files of all tests of the main module.
func testFiles(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_test.go") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestDesignNamesTestsThatExist checks the references of the design's pages and of the studies'
// traps: an assumption without its test is a claim.
func TestDesignNamesTestsThatExist(t *testing.T) {
	source := testSource(t)
	documents, err := filepath.Glob("docs/design/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range append(documents, "docs/studies.md", "DESIGN.md", "SECURITY.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile("`((Test|Fuzz|Benchmark)[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
		for _, name := range names {
			if !strings.Contains(source, "func "+name[1]+"(") {
				t.Errorf("%s names %s, which is no test here", document, name[1])
			}
		}
	}
}

// testSource is the code of all tests here.
func testSource(t *testing.T) string {
	t.Helper()
	var source strings.Builder
	for _, name := range testFiles(t) {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(code)
	}
	return source.String()
}

// TestEachThreatHasItsTest: what SECURITY.md says of an attack is held by a test that is there.
func TestEachThreatHasItsTest(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	source, lines := testSource(t), 0
	for row := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(cells) != 3 || cells[0] == " tries to " || strings.HasPrefix(cells[0], "---") {
			continue
		}
		lines++
		names := regexp.MustCompile("`((Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(cells[2], -1)
		if len(names) == 0 {
			t.Errorf("no test holds %q", cells[0])
		}
		for _, name := range names {
			if !strings.Contains(source, "func "+name[1]+"(") {
				t.Errorf("%s, which holds %q, is no test here", name[1], cells[0])
			}
		}
	}
	if lines < 20 {
		t.Errorf("only %d lines of threats", lines)
	}
}

// TestReadmeShowsBench compares README.md's table with the stored results of its picture, and its
// form with bench's output.
func TestReadmeShowsBench(t *testing.T) {
	binary := buildHoldfast(t)
	file, err := os.Open("docs/measured/policy.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stored, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	report := exec.Command(binary, "report", "-")
	report.Stdin = stored
	out, err := report.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := benchShown(out)
	holdSection(t, "bench", "```console\n$ holdfast bench\n"+want+"```\n")
	out, err = exec.Command(binary, append([]string{"bench", "--dir", t.TempDir(), "--writers", "1"}, strings.Fields(quickly)...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	form := func(text string) string { // the heads, the policies, and the lines below. The order of policies with the same loss depends on the run
		table, below, _ := strings.Cut(text, "\n\n")
		names := regexp.MustCompile(`(?m)^[> ] (\S+)`).FindAllString(table, -1)
		for i := range names {
			names[i] = names[i][2:]
		}
		slices.Sort(names[1:])
		return strings.Join(names, "\n") + "\n" + strings.Fields(below)[0]
	}
	if got, want := form(want), form(benchShown(out)); got != want {
		t.Errorf("README.md shows a table of the form\n%s\nand bench prints one of the form\n%s", got, want)
	}
}

// proveAnswer is the first line of prove: records lost and acknowledged, crashes, and the liars that were planted.
var proveAnswer = regexp.MustCompile(`^([\d,]+) of ([\d,]+) acknowledged records lost in ([\d,]+) crashes; controls (\d+) of (\d+) held, liars (\d+) of (\d+) caught`)

// TestReadmeShowsProve compares README.md's two places about prove with the stored output of one run, docs/measured/prove.txt, and
// the form of that with prove's output. To show a new run:
//
//	go run ./cmd/holdfast prove > docs/measured/prove.txt && go test -C dev ./tree -run TestReadmeShowsProve -update
func TestReadmeShowsProve(t *testing.T) {
	stored, err := os.ReadFile("docs/measured/prove.txt")
	if err != nil {
		t.Fatal(err)
	}
	oneLine := func(text string) (answer, head string) {
		above, table, _ := strings.Cut(text, "\nlevel ")
		head, _, _ = strings.Cut(table, "\n")
		return strings.ReplaceAll(above, "\n", " "), strings.Join(strings.Fields(head), " ")
	}
	answer, head := oneLine(string(stored))
	found := proveAnswer.FindStringSubmatch(answer)
	if found == nil {
		t.Fatalf("docs/measured/prove.txt begins with %q", answer)
	}
	if found[1] != "0" || found[4] != found[5] || found[6] != found[7] {
		t.Fatalf("docs/measured/prove.txt is of a run that does not hold: %q", answer)
	}
	parts := strings.SplitN(string(stored), "\n\n", 3) // the answer, the levels, and what was in flight
	if len(parts) < 3 {
		t.Fatalf("docs/measured/prove.txt has %d parts", len(parts))
	}
	holdSection(t, "prove", "```console\n$ holdfast prove\n"+parts[0]+"\n\n"+parts[1]+"\n```\n")

	sentence := fmt.Sprintf("**Does it hold?** `holdfast prove` crashed what writes %s times: 0 of %s acknowledged records lost, all %s planted liars caught ([below](#why-trust-it)).", found[3], found[2], found[6])
	text := readme(t)
	line := regexp.MustCompile(`(?m)^\*\*Does it hold\?\*\*.*$`).FindString(text)
	switch {
	case line == sentence:
	case line != "" && *update:
		if err := os.WriteFile("README.md", []byte(strings.Replace(text, line, sentence, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("README.md says\n%s\nwant (-update writes it)\n%s", line, sentence)
	}

	binary, command := buildHoldfast(t), runnable("holdfast prove")
	a, err := runShown(command, "", func(dir string) *exec.Cmd {
		cmd := exec.Command(binary, strings.Fields(command)[1:]...)
		cmd.Dir = dir
		return cmd
	})
	if !answered(command, err) {
		t.Fatal(err)
	}
	if now, nowHead := oneLine(string(a.stdout)); proveAnswer.FindString(now) == "" || nowHead != head {
		t.Errorf("prove prints\n%s\nlevel %s\nand README.md shows\nlevel %s", now, nowHead, head)
	}
}

// benchShown returns README.md's part of the output of bench or report: the table, without the notes
// below it, and the policy to use with its line of Go; what it costs and loses is in its row.
func benchShown(out []byte) string {
	_, table, _ := strings.Cut(string(out), "\n\n")
	table, _, _ = strings.Cut(table, "\ncost: ")
	_, use, _ := strings.Cut(string(out), "\nuse  ")
	use, _, _ = strings.Cut(use, "\n     no cost ")
	use, _, _ = strings.Cut(use, "\n     costs ")
	use, _, _ = strings.Cut(use, "\n     is the ")
	use, _, _ = strings.Cut(use, "\n     is as fast ")
	use, _, _ = strings.Cut(use, "\n     what it costs ")
	return table + "\n\nuse  " + strings.TrimSuffix(use, "\n") + "\n"
}
