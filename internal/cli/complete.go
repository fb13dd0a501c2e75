package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/source"
)

// completionTimeout is how long a shell waits for names.
const completionTimeout = 3 * time.Second

// A completion is what can stand behind a command.
type completion struct {
	resource schema.GroupVersionResource
	// cluster is set for cluster-scoped kinds, many for commands that take several names.
	cluster, many bool
}

// completions are those of commands, by their path without the program.
func completions() map[string]completion {
	group := completion{resource: v2alpha2.GroupVersion.WithResource("podgroups")}
	pool := completion{resource: v1alpha1.GroupVersion.WithResource("subnetpools")}
	composition := completion{resource: enov1.GroupVersion.WithResource("compositions")}
	synthesizer := completion{resource: enov1.GroupVersion.WithResource("synthesizers"), cluster: true}
	several := func(c completion) completion {
		c.many = true

		return c
	}

	return map[string]completion{
		"groups": group, "groups show": group, "groups explain": several(group),
		"pools": pool, "pools show": pool, "pools plan": pool, "pools restored": pool,
		"compositions": several(composition), "compositions show": several(composition), "compositions plan": composition, "compositions explain": several(composition), "compositions history": composition, "compositions prune": composition,
		"compositions rollback": composition, "compositions suspend": composition, "compositions resume": composition,
		"compositions rollout": synthesizer, "compositions rollout resume": synthesizer,
	}
}

// CompleteNames makes shells complete the names of objects, and of namespaces after -n. A cluster that
// does not answer completes nothing.
func CompleteNames(root *cobra.Command) { completeNames(root, source.Connect) }

func completeNames(root *cobra.Command, connect source.Connector) {
	for path, c := range completions() {
		cmd, rest, err := root.Find(strings.Fields(path))
		if err != nil || len(rest) > 0 {
			panic("completion of a command that does not exist: " + path)
		}
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 && !c.many {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}

			return namesOf(cmd, connect, c, args, prefix), cobra.ShellCompDirectiveNoFileComp
		}
	}
	if plan, _, err := root.Find([]string{"pools", "plan"}); err == nil {
		completeFlag(plan, "pool", connect, completions()["pools"])
	}
	completeNamespaces(root, connect)
}

func completeNamespaces(cmd *cobra.Command, connect source.Connector) {
	for _, sub := range cmd.Commands() {
		completeNamespaces(sub, connect)
	}
	if cmd.Flags().Lookup("namespace") != nil {
		completeFlag(cmd, "namespace", connect, completion{resource: corev1.SchemeGroupVersion.WithResource("namespaces"), cluster: true})
	}
}

func completeFlag(cmd *cobra.Command, flag string, connect source.Connector, c completion) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return namesOf(cmd, connect, c, nil, prefix), cobra.ShellCompDirectiveNoFileComp
	}) // the flag exists, and has none yet
}

// namesOf returns the names that begin with a prefix, without those that are given already.
func namesOf(cmd *cobra.Command, connect source.Connector, c completion, given []string, prefix string) []string {
	flags := clusterFlags(cmd)
	list, err := connect(flags, io.Discard)
	if err != nil {
		return nil
	}
	q := source.Query{Resource: c.resource}
	if all, _ := cmd.Flags().GetBool("all-namespaces"); !c.cluster && !all {
		if q.Namespace, _, err = flags.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil
		}
	}
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, completionTimeout)
	defer cancel()
	objects, err := list(ctx, q)
	if err != nil {
		return nil
	}
	var names []string
	for _, o := range objects {
		if name, _, _ := unstructured.NestedString(o, "metadata", "name"); strings.HasPrefix(name, prefix) && !slices.Contains(given, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)

	return slices.Compact(names)
}

// clusterFlags are the flags of a command that find a cluster, as they were typed.
func clusterFlags(cmd *cobra.Command) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddFlags(known)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if known.Lookup(f.Name) != nil && f.Value.Type() == "string" {
			_ = known.Set(f.Name, f.Value.String()) // a string always fits
		}
	})

	return flags
}
