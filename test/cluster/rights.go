package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// granting are the kinds of the chart that permissions are made of. The registration is one of
// them: the manager may write it, and not make it.
var granting = []string{"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ValidatingWebhookConfiguration"}

// An Account is the ServiceAccount of a manager.
type Account struct {
	Namespace, Name string
}

// Grant makes the service account of a manager with these flags, and gives it the permissions
// that the chart gives it, and those alone: a permission of an earlier manager's that the
// flags do not ask for is taken away. What only an operator can choose is in the file
// values.yaml of the test's package.
func (u *Up) Grant(ctx context.Context, flags ...string) (Account, error) {
	release, namespace, values := chartValues(flags)
	args := slices.Concat([]string{"template", release, Chart(), "--namespace", namespace}, Set(values...))
	if _, err := os.Stat("values.yaml"); err == nil {
		args = append(args, "--values", "values.yaml")
	}
	u.releases.mu.Lock()
	defer u.releases.mu.Unlock()
	objects, ok := u.releases.rendered[strings.Join(args, " ")]
	if !ok {
		text, err := u.Helm(ctx, args...)
		if err != nil {
			return Account{}, err
		}
		if objects, err = Objects(text); err != nil {
			return Account{}, err
		}
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !slices.Contains(granting, o.GetKind()) })
		if u.releases.rendered == nil {
			u.releases.rendered = map[string][]*unstructured.Unstructured{}
		}
		u.releases.rendered[strings.Join(args, " ")] = objects
	}

	return Account{Namespace: namespace, Name: release + "-manager"}, u.install(ctx, release, namespace, objects)
}

// chartValues are those with which the chart would give a manager these flags.
func chartValues(flags []string) (release, namespace string, values []string) {
	release, namespace = cmp.Or(flagOf(flags, "webhook-configuration"), "arbor"), cmp.Or(flagOf(flags, "namespace"), "arbor-system")
	values = []string{"fullnameOverride=" + release, "webhooks.enabled=" + cmp.Or(flagOf(flags, "webhooks"), "true")}
	parts := []string{"podgroups", "subnets", "synthesis", "delivery"}
	on := strings.Split(cmp.Or(flagOf(flags, "controllers"), strings.Join(parts, ",")), ",")
	for _, part := range parts {
		values = append(values, fmt.Sprintf("%s.enabled=%t", part, slices.Contains(on, part)))
	}
	values = append(values, "delivery.scope="+cmp.Or(flagOf(flags, "delivery-scope"), "cluster"))
	if flagOf(flags, "crds") == "check" {
		values = append(values, "crds.manage=none")
	}
	if flagOf(flags, "namespace-cleanup") == "true" {
		values = append(values, "synthesis.namespaceCleanup=true")
	}
	if flagOf(flags, "executor-image") != "" {
		values = append(values, "synthesis.pods.enabled=true", "synthesis.pods.namespace="+flagOf(flags, "synthesizer-pod-namespace"),
			"synthesis.pods.serviceAccount="+flagOf(flags, "synthesizer-pod-service-account"))
	}

	return release, namespace, values
}

// flagOf is the value of a flag, "" if it is not there. The last one counts.
func flagOf(flags []string, name string) string {
	value := ""
	for _, f := range flags {
		if key, v, given := strings.Cut(strings.TrimPrefix(f, "--"), "="); key == name && given {
			value = v
		} else if key == name {
			value = "true"
		}
	}

	return value
}

// KubeconfigOf writes a kubeconfig with a token of an account. It lives as long as any test.
func (u *Up) KubeconfigOf(ctx context.Context, a Account) (string, error) {
	token, err := u.Token(ctx, a)
	if err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: u.Config.Host, CertificateAuthority: u.Config.CAFile, CertificateAuthorityData: u.Config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"

	return u.write(config)
}

// Token asks for a token of an account.
func (u *Up) Token(ctx context.Context, a Account) (string, error) {
	c, err := u.NewClient(nil)
	if err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("cannot get a token of ServiceAccount %s/%s: %w", a.Namespace, a.Name, err)
	}

	return request.Status.Token, nil
}

// Through returns the flag with which a manager with these flags and the chart's permissions uses a
// proxy that authenticates as the administrator and impersonates the account. A token would not be
// sent over plain HTTP.
func (u *Up) Through(ctx context.Context, proxy string, flags ...string) (string, error) {
	a, err := u.Grant(ctx, flags...)
	if err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(proxy)
	if err != nil {
		return "", err
	}
	context := config.Contexts[config.CurrentContext]
	context.AuthInfo = "account"
	config.AuthInfos["account"] = &clientcmdapi.AuthInfo{
		Impersonate:       user(a.Namespace, a.Name),
		ImpersonateGroups: []string{"system:serviceaccounts", "system:serviceaccounts:" + a.Namespace, "system:authenticated"},
	}
	path, err := u.write(config)

	return "--kubeconfig=" + path, err
}

// write writes a kubeconfig into a file of its own, next to the administrator's.
func (u *Up) write(config *clientcmdapi.Config) (string, error) {
	file, err := os.CreateTemp(u.Dir, "manager-*.kubeconfig")
	if err != nil {
		return "", err
	}
	defer file.Close()

	return file.Name(), clientcmd.WriteToFile(*config, filepath.Clean(file.Name()))
}

// refusal matches the message of a denied request.
var refusal = regexp.MustCompile(`User "system:serviceaccount:[^"]*-manager" cannot \w+ resource "[^"]*" in API group "[^"]*"`)

// Refusals are the denied requests that the manager logged.
func (m *Manager) Refusals() []string {
	all := refusal.FindAllString(strings.ReplaceAll(m.Output(), `\`, ""), -1)
	slices.Sort(all)

	return slices.Compact(all)
}
