// Package kustomize delivers what kustomize builds: the synthesizer "kustomize".
//
// The whole directory is read into memory, inputs become files in it, and
// kustomize sees nothing else. Plugins, functions, Helm charts and remote files
// are off.
package kustomize

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/stock"
)

const (
	// localConfig has kustomize leave an object out of what it builds.
	localConfig = "config.kubernetes.io/local-config"
	// origin is where kustomize notes the file of an object, if it is told to.
	origin = "config.kubernetes.io/origin"
	// inputsDir is where inputs are, next to the kustomization.
	inputsDir = "inputs"
)

// Command is the synthesizer.
func Command(release string) stock.Command {
	var dir, sub string

	return stock.Command{
		Name: "arbor-synthesizer-kustomize", Release: release,
		Register: func(flags *flag.FlagSet) {
			flags.StringVar(&dir, "dir", "/manifests", "Directory that holds the kustomization and everything that it refers to.")
			flags.StringVar(&sub, "path", ".", "Directory of the kustomization to build, within --dir, such as overlays/production.")
		},
		Render: func(r stock.Request) (stock.Rendering, error) {
			files, err := stock.ReadDir(dir)
			if err != nil {
				return stock.Rendering{}, err
			}
			if path.IsAbs(sub) || strings.HasPrefix(path.Clean(sub), "..") {
				return stock.Rendering{}, fmt.Errorf("--path %q must be a directory within --dir", sub)
			}

			return build(files, path.Clean(sub), r.Inputs)
		},
	}
}

// build builds the kustomization in the directory root of files.
func build(files map[string][]byte, root string, inputs []stock.Input) (stock.Rendering, error) {
	t := tree{files: maps.Clone(files)}
	for _, in := range inputs {
		if err := t.addInput(path.Join(root, inputsDir), in); err != nil {
			return stock.Rendering{}, err
		}
	}
	if err := t.check(root); err != nil {
		return stock.Rendering{}, err
	}
	name, _ := t.kustomization(root)
	asked := t.askForOrigins(name)
	system, err := t.system()
	if err != nil {
		return stock.Rendering{}, err
	}

	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionNone
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.PluginConfig = types.DisabledPluginConfig()
	built, err := krusty.MakeKustomizer(options).Run(system, path.Join("/", root))
	if err != nil {
		return stock.Rendering{}, fmt.Errorf("%s: %w", name, plain(err))
	}
	var out stock.Rendering
	for _, r := range built.Resources() {
		o, err := object(r, name, asked)
		if err != nil {
			return stock.Rendering{}, err
		}
		out.Objects = append(out.Objects, o)
	}

	return out, nil
}

// plain is an error of kustomize in one line.
func plain(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

// object is what kustomize built, without the note of its origin unless the author
// asked for that.
func object(r *resource.Resource, kustomization string, asked bool) (stock.Object, error) {
	o := stock.Object{Source: kustomization}
	from, err := r.GetOrigin()
	if err != nil {
		return stock.Object{}, fmt.Errorf("%s: cannot read annotation %s of %s: %w", kustomization, origin, r.CurId(), err)
	}
	if from != nil {
		for _, name := range []string{from.Path, from.ConfiguredIn} {
			if name != "" {
				o.Source = path.Join(path.Dir(kustomization), name)

				break
			}
		}
	}
	data, err := r.MarshalJSON()
	if err != nil {
		return stock.Object{}, fmt.Errorf("%s: cannot encode %s: %w", o.Source, r.CurId(), err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&o.Content); err != nil {
		return stock.Object{}, fmt.Errorf("%s: cannot encode %s: %w", o.Source, r.CurId(), err)
	}
	if asked {
		o.RemoveAnnotation(origin)
	}

	return o, nil
}

// A tree is everything that kustomize sees, by paths with slashes.
type tree struct{ files map[string][]byte }

// addInput adds an input in two forms. The entries of a ConfigMap or a Secret are
// files, for generators. The object itself is a file too, under the key as its
// name, for replacements; kustomize does not build it. What the image has under
// the same path is the default.
func (t tree) addInput(dir string, in stock.Input) error {
	for name, data := range in.Files {
		t.files[path.Join(dir, in.Key, name)] = data
	}
	object := maps.Clone(in.Object)
	metadata := map[string]any{"name": in.Key}
	annotations := map[string]any{}
	if have, ok := object["metadata"].(map[string]any); ok {
		if labels, ok := have["labels"]; ok {
			metadata["labels"] = labels
		}
		if own, ok := have["annotations"].(map[string]any); ok {
			maps.Copy(annotations, own)
		}
	}
	annotations[localConfig] = "true"
	metadata["annotations"] = annotations
	object["metadata"] = metadata
	data, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if t.files[path.Join(dir, in.Key+".yaml")], err = yaml.JSONToYAML(data); err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}

	return nil
}

// system is the tree as kustomize reads it.
func (t tree) system() (filesys.FileSystem, error) {
	system := filesys.MakeFsInMemory()
	for name, data := range t.files {
		if err := system.WriteFile("/"+name, data); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}

	return system, nil
}

// askForOrigins has kustomize note the file that each object is from, unless the
// author did. It returns whether the notes have to be removed.
func (t tree) askForOrigins(name string) bool {
	var have map[string]any
	if err := yaml.Unmarshal(t.files[name], &have); err != nil || have["buildMetadata"] != nil {
		return false
	}
	with := append(bytes.Clone(t.files[name]), "\nbuildMetadata: [originAnnotations]\n"...)
	if err := yaml.Unmarshal(with, &have); err != nil || have["buildMetadata"] == nil {
		return false // written as JSON; names of files are lost in messages, and nothing else
	}
	t.files[name] = with

	return true
}
