// Command realcluster holds the parts of a Kubernetes cluster in one program.
//
//	realcluster apiserver|scheduler|controller-manager|kubelet|kubectl|check|allocatable [flags of the part]
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // CronJobs name time zones.

	"github.com/spf13/cobra"

	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	if len(os.Args) < 2 {
		fail("name a part: apiserver, scheduler, controller-manager, kubelet, kubectl, check or allocatable")
	}
	part := os.Args[1]
	// Each part reads os.Args as if it were the whole program.
	os.Args = append([]string{part}, os.Args[2:]...)
	// A command is built only when it is asked for: some change the state of the process.
	var command *cobra.Command
	switch part {
	case "apiserver":
		command = newAPIServerCommand()
	case "scheduler":
		command = scheduler.NewSchedulerCommand()
	case "controller-manager":
		command = controllers.NewControllerManagerCommand()
	case "kubelet":
		command = newKubeletCommand()
	case "check":
		command = newCheckCommand()
	case "allocatable":
		command = newAllocatableCommand()
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return
	default:
		fail(fmt.Sprintf("%q is not a part", part))
	}
	os.Exit(cli.Run(command))
}

func fail(text string) {
	fmt.Fprintln(os.Stderr, "realcluster: "+text)
	os.Exit(2)
}
