package machine

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/arbor-control/arbor/internal/pki"
)

// Pause is the image that holds the namespaces of a pod.
const Pause = "localhost/pause:node"

// containerdConfig has paths of its own for everything, so that nothing is read from the
// configuration of the machine.
const containerdConfig = `version = 3
root = %[1]q
state = %[2]q
disabled_plugins = ["io.containerd.nri.v1.nri"]

[grpc]
  address = %[3]q

[plugins.'io.containerd.internal.v1.opt']
  path = %[4]q

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = %[5]q
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = %[6]q

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = %[7]t
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [%[8]q]
    conf_dir = %[9]q
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = %[10]q
      SystemdCgroup = false
`

// network is the configuration of the CNI plugins: one bridge, without masquerading, which
// would need iptables.
const network = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "isDefaultGateway": true, "ipMasq": false,
   "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": %q}]]}}
]}
`

// kubeletConfig evicts nothing, since a full disk is none of the tests' business. Images that
// were pulled with a secret can be used without: a test pulls one that was imported, too.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
containerRuntimeEndpoint: unix://%[2]s
volumePluginDir: %[3]s
podLogsDir: %[4]s
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
resolvConf: ""
makeIPTablesUtilChains: false
healthzPort: 0
evictionHard: {memory.available: 0%%, nodefs.available: 0%%, nodefs.inodesFree: 0%%, imagefs.available: 0%%, imagefs.inodesFree: 0%%}
imageGCHighThresholdPercent: 100
imagePullCredentialsVerificationPolicy: NeverVerify
serializeImagePulls: false
`

// configure writes the configuration of all programs.
func (m *Machine) configure() error {
	restricted, err := cannotRaise()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"containerd.toml": fmt.Sprintf(containerdConfig, m.file("containerd"), m.file("containerd-state"), m.socket(), m.file("opt"), Pause,
			m.file("registries"), restricted, program("cni"), m.file("cni"), program("runc")),
		"cni/pods.conflist": fmt.Sprintf(network, m.file("addresses"), pods),
		"kubelet.yaml":      fmt.Sprintf(kubeletConfig, nodeIP, m.socket(), m.file("plugins"), m.file("logs")),
	} {
		if err := os.WriteFile(m.file(name), []byte(text), 0o600); err != nil {
			return err
		}
	}

	return os.MkdirAll(m.file("registries"), 0o755)
}

// capSysResource is the number of the capability to lower an oom_score_adj.
const capSysResource = 24

// cannotRaise reports whether this process lacks CAP_SYS_RESOURCE, without which runc cannot
// give pods the oom_score_adj that they ask for.
func cannotRaise() (bool, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false, err
	}
	_, after, _ := strings.Cut(string(status), "CapEff:")
	set, _, _ := strings.Cut(after, "\n")
	effective, err := strconv.ParseUint(strings.TrimSpace(set), 16, 64)
	if err != nil {
		return false, fmt.Errorf("cannot read the capabilities of this process: %w", err)
	}

	return effective&(1<<capSysResource) == 0, nil
}

// Mirror has the node pull images of a registry from a URL, with plain HTTP.
func (m *Machine) Mirror(registry, url string) error {
	dir := filepath.Join(m.file("registries"), registry)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("server = %q\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", url, url)

	return os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(text), 0o600)
}

// credentials writes the kubeconfig of the kubelet, with a certificate of the control plane.
func (m *Machine) credentials() error {
	var pair pki.Pair
	for name, data := range map[string]*[]byte{"ca.crt": &pair.Cert, "ca.key": &pair.Key} {
		var err error
		if *data, err = os.ReadFile(filepath.Join(m.up.Dir, "pki", name)); err != nil {
			return fmt.Errorf("cannot read the authority of the control plane: %w", err)
		}
	}
	ca, err := pki.ParseCA(pair)
	if err != nil {
		return err
	}
	own, err := ca.Issue(pki.Request{
		CommonName: "system:node:" + Name, Organizations: []string{"system:nodes"}, IPs: []net.IP{net.ParseIP(nodeIP)},
		Now: time.Now(), Life: 24 * time.Hour,
	})
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: m.up.Config.Host, CertificateAuthorityData: ca.CertPEM()}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: own.Cert, ClientKeyData: own.Key}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"

	return clientcmd.WriteToFile(*config, m.file("kubelet.kubeconfig"))
}
