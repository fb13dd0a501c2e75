package sandbox

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissing(t *testing.T) {
	good := machine{
		os: "linux", filesystems: "nodev\ttmpfs\nnodev\tcgroup2\n",
		try: func() error { return nil }, exists: func(string) bool { return true }, inPath: func(string) bool { return true },
	}
	cases := map[string]struct {
		reason string
		change func(*machine)
		want   string
	}{
		"Nothing": {"Everything is there.", func(*machine) {}, ""},
		"System":  {"There are no namespaces elsewhere.", func(m *machine) { m.os = "darwin" }, "they need Linux, and this is darwin"},
		"User":    {"Only root can mount.", func(m *machine) { m.uid = 1000 }, "they need root, and this is user 1000"},
		"Cgroups": {"Containers are cgroups.", func(m *machine) { m.filesystems = "nodev\ttmpfs\n" }, "they need cgroups, and neither cgroup nor cgroup2 is in /proc/filesystems"},
		"Ip":      {"It sets up the network.", func(m *machine) { m.inPath = func(string) bool { return false } }, "they need the program ip (Debian: apt-get install iproute2)"},
		"Program": {"It is not built.", func(m *machine) { m.exists = func(string) bool { return false } }, "they need bin/node/kubelet (make node-tools)"},
		"Try":     {"A container may have root, and not this.", func(m *machine) { m.try = func() error { return errors.New("operation not permitted") } }, "they need namespaces, mounts and cgroups of their own, and this machine does not allow them: operation not permitted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := good
			tc.change(&m)
			if diff := cmp.Diff(tc.want, m.missing([]Program{{Path: "bin/node/kubelet", Makes: "make node-tools"}})); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

// A skip is a failure where all tests are meant to run.
func TestSkip(t *testing.T) {
	for value, want := range map[string]int{"": 0, "false": 0, "true": 1} {
		t.Setenv("CI", value)
		if got := skip("they need root"); got != want {
			t.Errorf("with CI=%s the exit code is %d, want %d", value, got, want)
		}
	}
}

func TestHierarchies(t *testing.T) {
	//nolint:dupword // that is how the kernel writes it
	const v1 = `30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
32 30 0:28 /a /sys/fs/cgroup/systemd rw,relatime shared:9 - cgroup cgroup rw,name=systemd
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`
	cases := map[string]struct {
		reason, mountinfo string
		want              []hierarchy
	}{
		"None": {"Other mounts are none.", "22 1 254:0 / / rw - ext4 /dev/vda rw\n", nil},
		"One": {"Controllers are those of the mount. The tree of v2 has none then.", v1, []hierarchy{
			{at: "/sys/fs/cgroup/cpu", kind: "cgroup", options: "cpu"}, {at: "/sys/fs/cgroup/systemd", kind: "cgroup", options: "name=systemd"},
		}},
		"Two": {"There is one tree.", "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 none rw,nsdelegate\n", []hierarchy{
			{at: "/sys/fs/cgroup", kind: "cgroup2", options: "nsdelegate"},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, hierarchies(tc.mountinfo), cmp.AllowUnexported(hierarchy{})); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLacking(t *testing.T) {
	cases := map[string]struct {
		reason, kind string
		have         []string
		want         string
	}{
		"One":    {"They are options of mounts.", "cgroup", controllers([]hierarchy{{options: "cpu,cpuacct"}, {options: "cpuset"}, {options: "memory"}, {options: "devices"}, {options: "name=systemd"}}), ""},
		"Two":    {"The file cgroup.controllers lists them.", "cgroup2", []string{"cpuset", "cpu", "io", "memory", "pids"}, ""},
		"Not":    {"v1 may be mounted in part.", "cgroup", []string{"cpu", "cpuacct", "devices"}, "cgroup in /sys/fs/cgroup lacks controllers: cpuset, memory"},
		"Hybrid": {"Where v1 has the controllers, v2 does not.", "cgroup2", []string{"hugetlb"}, "cgroup2 in /sys/fs/cgroup lacks controllers: cpu, memory, pids"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := lacking(tc.kind, tc.have); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
