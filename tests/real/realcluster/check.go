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
	return newFileCommand("check", "judge command lines of kubelets", func(line []string) string {
		if _, err := readSettings(line); err != nil {
			return err.Error()
		}
		return ""
	})
}

// newFileCommand returns a command that reads a JSON list from a file and prints a JSON list of
// what it answers for each entry.
func newFileCommand[E, A any](name, short string, answer func(E) A) *cobra.Command {
	return &cobra.Command{
		Use:          name + " FILE",
		Short:        short,
		Args:         cobra.ExactArgs(1),
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			var entries []E
			if err := json.Unmarshal(text, &entries); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			answers := make([]A, len(entries))
			for i, entry := range entries {
				answers[i] = answer(entry)
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(answers)
		},
	}
}
