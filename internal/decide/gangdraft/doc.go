// Package gangdraft makes the pods that manifests stand for, as controllers and the API server would, and
// groups them by the PodGroup that they name. It finds StatefulSets that wait for their own pods.
package gangdraft
