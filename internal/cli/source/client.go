package source

import (
	"fmt"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConnectClient is for commands that ask for objects one after the other, or
// write them.
func ConnectClient(flags *genericclioptions.ConfigFlags) (client.Client, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find a cluster: %w", err)
	}

	// One after the other: no other brake is needed.
	config.QPS = -1

	mapper, err := flags.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}

	c, err := client.New(config, client.Options{Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}

	return c, nil
}
