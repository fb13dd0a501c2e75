package kube

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// indexField adds an index that finds objects in one namespace and in all.
func indexField(ctx context.Context, i client.FieldIndexer, o client.Object, field string, values client.IndexerFunc) error {
	return i.IndexField(ctx, o, field, values) //nolint:wrapcheck // IndexSubnets does
}

// indexInNamespace adds an index that finds objects in one namespace only. Every value that
// finds objects in all namespaces costs as much memory once more, and of Subnets there can
// be very many. The names of index and values are those that the reader of a
// controller-runtime cache looks for. If they differed, every list would be an error.
func indexInNamespace(ctx context.Context, i client.FieldIndexer, o client.Object, field string, values client.IndexerFunc) error {
	informers, ok := i.(cache.Informers)
	if !ok {
		return indexField(ctx, i, o, field, values)
	}
	informer, err := informers.GetInformer(ctx, o, cache.BlockUntilSynced(false))
	if err != nil {
		return err //nolint:wrapcheck // IndexSubnets does
	}

	return informer.AddIndexers(toolscache.Indexers{"field:" + field: func(raw any) ([]string, error) { //nolint:wrapcheck // IndexSubnets does
		o, ok := raw.(client.Object)
		if !ok {
			return nil, nil
		}
		found := values(o)
		keys := make([]string, len(found))
		for at, value := range found {
			keys[at] = o.GetNamespace() + "/" + value
		}

		return keys, nil
	}})
}
