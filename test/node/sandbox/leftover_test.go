package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMountsOf(t *testing.T) {
	cases := map[string]struct {
		reason, mountinfo string
		want              []string
	}{
		"Source":  {"It is the source of its mounts.", "30 25 0:26 / /etc rw - tmpfs arbor-node-12 rw\n", []string{"/etc"}},
		"Layer":   {"Or its directory is in the options.", "30 25 0:26 / /opt rw - overlay none rw,upperdir=/run/arbor-node-12/layers/opt\n", []string{"/opt"}},
		"Program": {"Programs mount below its directory.", "30 25 0:26 / /run/arbor-node-12/node/pod rw - tmpfs none rw\n", []string{"/run/arbor-node-12/node/pod"}},
		"File":    {"A file of it is mounted.", "30 25 0:26 /arbor-node-12/settings/x /proc/sys/x rw - tmpfs none rw\n", []string{"/proc/sys/x"}},
		"Other":   {"Another sandbox has another name.", "30 25 0:26 / /etc rw - tmpfs arbor-node-123 rw\n31 25 0:26 / /opt rw - tmpfs arbor-node-1 rw\n", nil},
		"Docker":  {"Other containers have mounts as well.", "30 25 0:26 / /var/lib/containerd/x rw - overlay none rw\n", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mountsOf(tc.mountinfo, "arbor-node-12")); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUncovered(t *testing.T) {
	const own, other = "30 25 0:26 / /etc rw - tmpfs arbor-node-12 rw\n", "31 25 0:27 / /etc rw - ext4 /dev/vda rw\n"
	cases := map[string]struct {
		reason, mountinfo string
		want              []string
	}{
		"Covered": {"The sandbox has mounted something there.", own, []string{}},
		"Not":     {"Programs write to the machine.", "", []string{"/etc"}},
		"Before":  {"The last mount counts.", other + own, []string{}},
		"After":   {"It hides the sandbox's.", own + other, []string{"/etc"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, uncovered(tc.mountinfo, "arbor-node-12", []string{"/etc"})); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}
