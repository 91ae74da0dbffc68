package deploy

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const module = "github.com/holdfast-go/holdfast"

// read decodes a manifest. A key that Kubernetes does not know, or that stands in it twice, is an error.
func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestJob(t *testing.T) {
	var job batchv1.Job
	read(t, "kubernetes-job.yaml", &job)
	if got := (metav1.TypeMeta{Kind: "Job", APIVersion: batchv1.SchemeGroupVersion.String()}); job.TypeMeta != got {
		t.Errorf("%+v, want %+v", job.TypeMeta, got)
	}
	if *job.Spec.Completions != *job.Spec.Parallelism || *job.Spec.CompletionMode != batchv1.IndexedCompletion || *job.Spec.BackoffLimit != 0 {
		t.Error("not one try for each of so many nodes, all at once")
	}
	pod := job.Spec.Template
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("a bench that fails begins again: %s", pod.Spec.RestartPolicy)
	}
	terms := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(terms) != 1 || terms[0].TopologyKey != corev1.LabelHostname || !selects(t, terms[0].LabelSelector, pod.Labels) {
		t.Errorf("two pods may be on one node: %+v", terms)
	}
	checkPod(t, pod.Spec)
}

// TestJobOfTheInstallPage has no more rights than the others.
func TestJobOfTheInstallPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yaml\n(apiVersion: batch/v1\n.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/install.md shows no job")
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(found[1], &job); err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec
	if pod.RestartPolicy != corev1.RestartPolicyNever || len(pod.Containers) != 1 || len(pod.Containers[0].VolumeMounts) != 1 || pod.Containers[0].VolumeMounts[0].MountPath != "/data" {
		t.Errorf("it does not ask once about the volume at /data: %+v", pod)
	}
	checkPod(t, pod)
}

func TestDaemonSet(t *testing.T) {
	var set appsv1.DaemonSet
	read(t, "kubernetes-daemonset.yaml", &set)
	if got := (metav1.TypeMeta{Kind: "DaemonSet", APIVersion: appsv1.SchemeGroupVersion.String()}); set.TypeMeta != got {
		t.Errorf("%+v, want %+v", set.TypeMeta, got)
	}
	pod := set.Spec.Template
	if !selects(t, set.Spec.Selector, pod.Labels) {
		t.Error("its selector does not select its pods")
	}
	// A DaemonSet restarts whatever ends, so the bench must be over before the container that stays.
	if len(pod.Spec.InitContainers) != 1 || pod.Spec.InitContainers[0].Args[0] != "bench" || pod.Spec.RestartPolicy != "" {
		t.Error("bench is not run once")
	}
	checkPod(t, pod.Spec)
}

func selects(t *testing.T, s *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(of))
}

// checkPod holds what both pods have: the name of the node, mounts of volumes that exist, and no
// rights that they do not need, as the Pod Security Standard "restricted" has it. They measure the disk, and keep the results elsewhere.
func checkPod(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	if pod.HostNetwork || pod.HostPID || pod.HostIPC || pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("the pod has the node's network, processes or a token, and needs none")
	}
	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 || s.FSGroup == nil || *s.FSGroup != *s.RunAsUser ||
		s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod is not restricted to a user without rights, who may write to its volumes: %+v", pod.SecurityContext)
	}
	volumes := map[string]corev1.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		s := c.SecurityContext
		if s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s has rights that it does not need", c.Name)
		}
		if c.Image == "" || strings.HasSuffix(c.Image, ":latest") || !strings.Contains(c.Image, ":") {
			t.Errorf("%s has no version: %s", c.Name, c.Image)
		}
		mounts := map[string]corev1.Volume{}
		for _, m := range c.VolumeMounts {
			v, ok := volumes[m.Name]
			if !ok {
				t.Errorf("%s mounts %s, which is no volume", c.Name, m.Name)
			}
			mounts[m.MountPath] = v
		}
		if len(c.Args) == 0 || c.Args[0] != "bench" {
			continue
		}
		if want := madeImage(t); c.Image != want {
			t.Errorf("%s is made by %s, and the release makes %s", c.Name, c.Image, want)
		}
		value := func(flag string) string { return c.Args[slices.Index(c.Args, flag)+1] }
		if disk, ok := mounts[value("--dir")]; !ok || disk.EmptyDir == nil || disk.EmptyDir.Medium != corev1.StorageMediumDefault {
			t.Errorf("%s measures %s, which is no disk of the node", c.Name, value("--dir"))
		}
		if results, ok := mounts[filepath.Dir(value("-o"))]; !ok || results.EmptyDir != nil && results.EmptyDir.Medium != corev1.StorageMediumMemory {
			t.Errorf("%s writes results to %s", c.Name, value("-o"))
		}
		node := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return "$("+e.Name+")" == value("--host") })
		if node < 0 || c.Env[node].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
			t.Errorf("%s calls the host %s, and not like its node", c.Name, value("--host"))
		}
	}
}

// madeImage is the name in the image that dev/tools/release makes of the newest version, as docs/install.md shows it.
func madeImage(t *testing.T) string {
	t.Helper()
	changes, err := os.ReadFile("../../CHANGELOG.md")
	install, err2 := os.ReadFile("../../docs/install.md")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^## ([0-9.]+)`).FindSubmatch(changes)
	if version == nil {
		t.Fatal("CHANGELOG.md has no version")
	}
	name := "localhost/holdfast:" + string(version[1])
	if !strings.Contains(string(install), "image: "+name+"\n") {
		t.Errorf("docs/install.md has no %s", name)
	}
	return name
}

func TestFilesAreShort(t *testing.T) {
	for pattern, most := range map[string]int{"slurm.sh": 40, "*.y*ml": 40, "../../action.yml": 25, "README.md": 40, "try-slurm": 100} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if n := strings.Count(string(text), "\n"); err != nil || n > most {
				t.Errorf("%s has %d lines, of at most %d, %v", file, n, most, err)
			}
		}
	}
}

// fake is a holdfast that prints its arguments, and makes the file of -o.
const fake = `#!/bin/sh
echo "$@"
while [ $# -gt 1 ]; do shift; done
echo results > "$1"
`

// faked returns the name of such a program.
func faked(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "holdfast")
	if err := os.WriteFile(program, []byte(fake), 0o777); err != nil {
		t.Fatal(err)
	}
	return program
}

func TestSlurmScript(t *testing.T) {
	script, err := filepath.Abs("slurm.sh")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	host, err := exec.Command("uname", "-n").Output()
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("bash", append([]string{script}, args...)...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "HOLDFAST="+faked(t), "SLURM_JOB_ID=17")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return err.Error() + "\n" + string(out)
		}
		return string(out)
	}
	name := strings.TrimSpace(string(host)) + "-17.jsonl\n"
	if got, want := run("/scratch"), "bench --quick --dir /scratch -o holdfast-results/"+name; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := run("/a b", "there", "--rounds", "6"), "bench --rounds 6 --dir /a b -o there/"+name; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := run(); !strings.Contains(got, "name a directory on the disk to measure") {
		t.Errorf("got %s", got)
	}
}

// TestAnsible runs the play over two hosts that are this machine, one of which can't measure.
func TestAnsible(t *testing.T) {
	if _, err := exec.LookPath("ansible-playbook"); err != nil {
		t.Skip("no ansible-playbook here (Debian: apt-get install ansible-core)")
	}
	play, err := filepath.Abs("ansible.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ansible := func(args ...string) (string, error) {
		cmd := exec.Command("ansible-playbook", append(args, play)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "ANSIBLE_LOCALHOST_WARNING=false", "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := ansible("--syntax-check"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	hosts := "one ansible_connection=local ansible_python_interpreter=auto_silent\ntwo ansible_connection=local ansible_python_interpreter=auto_silent flags=--no-such-flag\n"
	broken := strings.Replace(fake, "echo \"$@\"", "case $* in *no-such-flag*) exit 2;; esac", 1)
	program := faked(t)
	if err := errors.Join(os.WriteFile(program, []byte(broken), 0o777), os.WriteFile(filepath.Join(dir, "hosts"), []byte(hosts), 0o666)); err != nil {
		t.Fatal(err)
	}
	out, err := ansible("-i", "hosts", "-e", "program="+program, "-e", "dir="+dir, "-e", "results="+filepath.Join(dir, "results"))
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		t.Errorf("the host two fails, and the play does not: %v\n%s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "results", "one.jsonl")); err != nil || string(text) != "results\n" {
		t.Errorf("%v: %q\n%s", err, text, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "results", "two.jsonl")); err == nil {
		t.Errorf("there are results of the host two:\n%s", out)
	}
}

// TestWorkflowsAreOfOneCommitEach: who moves a tag of an action gets no rights here.
func TestWorkflowsAreOfOneCommitEach(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	pinned, found := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`), 0
	for _, file := range append(files, "../../action.yml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, uses := range regexp.MustCompile(`(?m)\buses: *(.*)$`).FindAllStringSubmatch(string(text), -1) {
			found++
			if !pinned.MatchString(uses[1]) {
				t.Errorf("%s uses %s, and not one commit with its version behind it", file, uses[1])
			}
		}
	}
	if found == 0 {
		t.Error("no workflow uses an action")
	}
}

// TestWorkflowInstallsWhatCheckNeeds: check installs nothing there, since it is not root.
func TestWorkflowInstallsWhatCheckNeeds(t *testing.T) {
	check, err := os.ReadFile("../../check")
	workflow, err2 := os.ReadFile("../../.github/workflows/check.yml")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	packages := map[string]bool{}
	for _, list := range regexp.MustCompile(`(?m)\bneeded\+?="([^"]*)"`).FindAllStringSubmatch(string(check), -1) {
		for need := range strings.FieldsSeq(list[1]) {
			_, name, _ := strings.Cut(need, ":")
			packages[name] = true
		}
	}
	list := regexp.MustCompile(`for package in (.*); do`).FindStringSubmatch(string(workflow))
	if len(packages) < 10 || list == nil {
		t.Fatalf("check needs %v, and the workflow installs %q", packages, list)
	}
	for name := range packages {
		if !slices.Contains(strings.Fields(list[1]), name) {
			t.Errorf("check needs the package %s, and the workflow installs %s", name, list[1])
		}
	}
}

// TestAction runs the steps of action.yml as a runner does, with a go and a holdfast that say how they were called.
func TestAction(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	var action struct {
		Name, Description string
		Inputs            map[string]struct{ Description, Default string }
		Runs              struct {
			Using string
			Steps []struct {
				If, Shell, Run string
				Env            map[string]string
			}
		}
	}
	read(t, "../../action.yml", &action)
	dir := t.TempDir()
	const fakeGo = `#!/bin/sh
echo "go $*" "$GOBIN"
case $* in *build*) mkdir -p "$RUNNER_TEMP/new"; printf '#!/bin/sh\necho "holdfast $*"; exit 1\n' >"$RUNNER_TEMP/new/holdfast"; chmod +x "$RUNNER_TEMP/new/holdfast" ;; esac
`
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(fakeGo), 0o777); err != nil {
		t.Fatal(err)
	}
	given := map[string]string{"packages": "./a ./b/...", "against": "v0.1.0"}
	wants := []string{"go test -count=1 ./a ./b/... \n", strings.Join([]string{"go install " + module + "/cmd/holdfast@v0.1.0 T/old", "go -C /action build -o T/new/ ./cmd/holdfast ", "holdfast bench --against T/old/holdfast --dir T\n"}, "\n")}
	if len(action.Runs.Steps) != len(wants) || len(action.Inputs) != len(given) || action.Runs.Using != "composite" {
		t.Fatalf("%+v", action)
	}
	for i, step := range action.Runs.Steps {
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "RUNNER_TEMP="+dir, "GITHUB_ACTION_PATH=/action", "GOBIN=")
		for name, value := range step.Env { // only so: an input in the script would be run
			input := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
			cmd.Env = append(cmd.Env, name+"="+given[input])
			if step.If != "inputs."+input+" != ''" {
				t.Errorf("a step for %s is run if %s", input, step.If)
			}
		}
		out, err := cmd.CombinedOutput()
		if got := strings.ReplaceAll(string(out), dir, "T"); got != wants[i] || strings.Contains(step.Run, "${{") || (err != nil) != (i == 1) {
			t.Errorf("%v: got\n%swant\n%s", err, got, wants[i])
		}
	}
}
