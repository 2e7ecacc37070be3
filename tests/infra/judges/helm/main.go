// Command judge prints what Helm makes of a chart: the manifests, or why it refuses the values.
//
// The arguments are the chart's folder or archive and a file with a JSON list of questions; printed is a JSON
// list of as many verdicts.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
)

type question struct {
	// As after --set.
	Set []string `json:"set"`
	// As in a file after --values.
	Values map[string]any `json:"values"`
	// A value that is used and was not given ends it.
	Strict bool `json:"strict"`
	// As `helm lint` renders.
	Lint bool `json:"lint"`
}

type verdict struct {
	Error     string            `json:"error"`
	Templates map[string]string `json:"templates"`
	CRDs      []string          `json:"crds"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("name the chart and one file")
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	var questions []question
	if err := json.Unmarshal(text, &questions); err != nil {
		return err
	}
	said := make([]verdict, 0, len(questions))
	for _, one := range questions {
		answer, err := render(args[0], one)
		if err != nil {
			answer.Error = err.Error()
		}
		said = append(said, answer)
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

func render(path string, asked question) (verdict, error) {
	loaded, err := loader.Load(path)
	if err != nil {
		return verdict{}, err
	}
	if err := loaded.Validate(); err != nil {
		return verdict{}, err
	}
	given := asked.Values
	if given == nil {
		given = map[string]any{}
	}
	for _, pair := range asked.Set {
		if err := strvals.ParseInto(pair, given); err != nil {
			return verdict{}, err
		}
	}
	release := chartutil.ReleaseOptions{
		Name: "dovetail", Namespace: "kube-system", Revision: 1, IsInstall: true,
	}
	values, err := chartutil.ToRenderValues(loaded, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return verdict{}, err
	}
	made, err := engine.Engine{Strict: asked.Strict, LintMode: asked.Lint}.Render(loaded, values)
	if err != nil {
		return verdict{}, err
	}
	answer := verdict{Templates: made}
	for _, definition := range loaded.CRDObjects() {
		answer.CRDs = append(answer.CRDs, string(definition.File.Data))
	}
	return answer, nil
}
