package machine

import "testing"

const (
	version2 = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	version1 = `31 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 23 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 23 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`
)

func limits(t *testing.T, files map[string]string) func(name, want string) {
	return checker(t, tree(files).limits())
}

func TestLimitsOfVersion2AreTheTightestOnTheWayUp(t *testing.T) {
	check := limits(t, map[string]string{
		"proc/self/mountinfo":               version2,
		"proc/self/cgroup":                  "0::/a/b\n",
		"sys/fs/cgroup/a/cpu.max":           "150000 100000\n",
		"sys/fs/cgroup/a/b/cpu.max":         "max 100000\n",
		"sys/fs/cgroup/a/memory.max":        "max\n",
		"sys/fs/cgroup/a/b/memory.max":      "536870912\n",
		"sys/fs/cgroup/a/b/c/memory.max":    "1\n",
		"sys/fs/cgroup/other/a/memory.max":  "1\n",
		"sys/fs/cgroup/other/a/b/cpu.stats": "",
	})
	check("cgroup CPU limit", "1.5 CPUs")
	check("cgroup memory limit", "512.0 MiB")
}

func TestLimitsAtTheTopOfVersion2(t *testing.T) {
	check := limits(t, map[string]string{
		"proc/self/mountinfo": version2,
		"proc/self/cgroup":    "0::/\n",
	})
	check("cgroup CPU limit", "no limit")
	check("cgroup memory limit", "no limit")
}

func TestLimitsOfVersion1(t *testing.T) {
	check := limits(t, map[string]string{
		"proc/self/mountinfo":                              version1,
		"proc/self/cgroup":                                 "4:memory:/m\n3:cpu,cpuacct:/c\n0::/\n",
		"sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us":     "50000\n",
		"sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us":    "100000\n",
		"sys/fs/cgroup/memory/m/memory.limit_in_bytes":     "9223372036854771712\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":       "9223372036854771712\n",
		"sys/fs/cgroup/memory/m/sub/memory.limit_in_bytes": "4096\n",
	})
	check("cgroup CPU limit", "0.5 CPUs")
	check("cgroup memory limit", "no limit")
}

func TestLimitsInAContainerThatSeesOnlyItsOwnGroup(t *testing.T) {
	check := limits(t, map[string]string{
		"proc/self/mountinfo":      "31 23 0:28 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
		"proc/self/cgroup":         "0::/docker/abc\n",
		"sys/fs/cgroup/cpu.max":    "200000 100000\n",
		"sys/fs/cgroup/memory.max": "1073741824\n",
	})
	check("cgroup CPU limit", "2 CPUs")
	check("cgroup memory limit", "1.0 GiB")
}

func TestLimitsThatCannotBeRead(t *testing.T) {
	check := limits(t, map[string]string{
		"proc/self/mountinfo":                          version1,
		"proc/self/cgroup":                             "4:memory:/m\n3:cpu,cpuacct:/c\n",
		"sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us": "junk\n",
	})
	check("cgroup CPU limit", Unknown)
	check("cgroup memory limit", Unknown)
}
