// Command judge prints what Terraform's own reader finds in the modules of the folders it is given.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-config-inspect/tfconfig"
)

func main() {
	found := map[string]*tfconfig.Module{}
	for _, folder := range os.Args[1:] {
		module, _ := tfconfig.LoadModule(folder)
		found[folder] = module
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
