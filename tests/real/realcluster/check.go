package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// newCheckCommand returns a command that judges command lines of kubelets. The file has a JSON list
// of lists of arguments; printed is a JSON list of what a kubelet would end with, empty where it
// would start.
func newCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:          "check FILE",
		Short:        "judge command lines of kubelets",
		Args:         cobra.ExactArgs(1),
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			var lines [][]string
			if err := json.Unmarshal(text, &lines); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			verdicts := make([]string, len(lines))
			for i, line := range lines {
				if _, err := readSettings(line); err != nil {
					verdicts[i] = err.Error()
				}
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(verdicts)
		},
	}
}
