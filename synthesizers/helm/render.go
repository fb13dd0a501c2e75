package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/arbor-control/arbor/internal/stock"
)

// maxRelease is how long the name of a release may be. Charts append to it, and
// labels have 63 characters.
const maxRelease = 53

// render renders the chart. It is loaded each time, because to render a chart
// changes it.
func (o *options) render(ctx context.Context, r stock.Request) (stock.Rendering, error) {
	given, err := values(r.Inputs)
	if err != nil {
		return stock.Rendering{}, err
	}
	c, err := o.load(given)
	if err != nil {
		return stock.Rendering{}, err
	}
	texts, err := o.execute(ctx, c, given, r)
	if err != nil {
		return stock.Rendering{}, err
	}
	var out stock.Rendering
	for _, crd := range c.CRDObjects() {
		objects, err := stock.Parse(crd.Filename, crd.File.Data)
		if err != nil {
			return stock.Rendering{}, err
		}
		if err := check(objects); err != nil {
			return stock.Rendering{}, err
		}
		for _, object := range objects {
			keep(object)
		}
		out.Objects = append(out.Objects, objects...)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if path.Base(name) == "NOTES.txt" {
			continue
		}
		objects, twice, err := stock.ParseRendered(name, []byte(texts[name]))
		if err != nil {
			return stock.Rendering{}, err
		}
		out.Objects = append(out.Objects, objects...)
		out.Warnings = append(out.Warnings, twice...)
	}

	return arrange(out)
}

func check(all []stock.Object) error {
	for _, o := range all {
		if err := o.Check(); err != nil {
			return err
		}
	}

	return nil
}

// load loads the chart with those of its dependencies that the values switch on.
func (o *options) load(given map[string]any) (*chart.Chart, error) {
	c, err := loader.Load(o.chart)
	if err != nil {
		return nil, fmt.Errorf("cannot load the chart %s: %w", o.chart, err)
	}
	if c.Metadata.Type == "library" {
		return nil, fmt.Errorf("chart %s is a library: it has no objects of its own", c.Name())
	}
	if err := complete(c); err != nil {
		return nil, err
	}
	if err := offline(c); err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(c, given); err != nil {
		return nil, fmt.Errorf("cannot load the dependencies of chart %s: %w", c.Name(), err)
	}

	return c, nil
}

// complete wants all dependencies to be in the chart: there is no network to get
// them from.
func complete(c *chart.Chart) error {
	for i, d := range c.Metadata.Dependencies {
		if d == nil {
			continue
		}
		if !slices.ContainsFunc(c.Dependencies(), func(have *chart.Chart) bool { return have.Name() == d.Name }) {
			return fmt.Errorf("%s/Chart.yaml: dependencies[%d]: chart %s is not in charts/: run helm dependency build before you build the image", c.ChartFullPath(), i, d.Name)
		}
	}
	for _, d := range c.Dependencies() {
		if err := complete(d); err != nil {
			return err
		}
	}

	return nil
}

// execute returns what the templates become, by their paths.
func (o *options) execute(ctx context.Context, c *chart.Chart, given map[string]any, r stock.Request) (map[string]string, error) {
	name, namespace, err := o.names(r)
	if err != nil {
		return nil, err
	}
	capabilities, err := o.capabilities()
	if err != nil {
		return nil, err
	}
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("chart %s wants Kubernetes %s, and this is %s: set --kube-version to the version of the cluster", c.Name(), want, capabilities.KubeVersion.Version)
	}
	all, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name(), oneLine(err))
	}
	texts, err := engine.Engine{CustomTemplateFuncs: template.FuncMap{"now": clock(r.Repeated)}}.RenderWithContext(ctx, c, all)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name(), oneLine(err))
	}

	return texts, nil
}

// clock is the time that templates see. It is far later in the second rendering, so
// that whatever depends on it differs.
func clock(repeated bool) func() time.Time {
	return func() time.Time {
		if repeated {
			return time.Now().AddDate(1, 1, 1).Add(time.Hour + time.Minute + time.Second)
		}

		return time.Now()
	}
}

// names are the name and the namespace of the release.
func (o *options) names(r stock.Request) (name, namespace string, err error) {
	name, namespace = o.release, r.Namespace
	if name == "" {
		name = r.Composition
	}
	if name == "" {
		name = "release-name" // as helm template calls it
	}
	if namespace == "" {
		namespace = "default"
	}
	if len(name) > maxRelease {
		return "", "", fmt.Errorf("the name of the release, %s, is longer than %d characters: set --release-name", name, maxRelease)
	}

	return name, namespace, nil
}

func (o *options) capabilities() (*common.Capabilities, error) {
	all := common.DefaultCapabilities.Copy()
	all.APIVersions = append(slices.Clone(all.APIVersions), o.apiVersions...)
	if o.kubeVersion == "" {
		return all, nil
	}
	version, err := common.ParseKubeVersion(o.kubeVersion)
	if err != nil {
		return nil, fmt.Errorf("--kube-version %q: %w", o.kubeVersion, err)
	}
	all.KubeVersion = *version

	return all, nil
}

// oneLine is an error of Helm, which uses several lines, in one.
func oneLine(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
