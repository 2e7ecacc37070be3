package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	cliflag "k8s.io/component-base/cli/flag"
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	fakecri "k8s.io/cri-client/pkg/fake"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubeletscheme "k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubemark"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

const runtimeTimeout = 15 * time.Second

// settings are what the command line of a kubelet says: its flags, its configuration, and a flag of
// the hollow kubelet.
type settings struct {
	flags   *options.KubeletFlags
	config  *kubeletconfig.KubeletConfiguration
	machine string
}

// newKubeletCommand returns the kubelet on a machine that does not exist. Flags, configuration
// file, registration, status, leases, pod admission and pod status are the kubelet's own code; the
// container runtime, the cgroups and cAdvisor are fakes, as in kubemark.
func newKubeletCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubelet",
		Short:              "a kubelet on a machine that does not exist",
		SilenceUsage:       true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			said, err := readSettings(args)
			if err != nil {
				return err
			}
			return runKubelet(cmd.Context(), said)
		},
	}
}

// readSettings reads the command line as the kubelet's command does: flags win over the file.
func readSettings(args []string) (*settings, error) {
	config, err := options.NewKubeletConfiguration()
	if err != nil {
		return nil, err
	}
	said, err := parse(args, config)
	if err != nil {
		return nil, err
	}
	if file := said.flags.KubeletConfigFile; file != "" {
		if config, err = readConfig(file); err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		if said, err = parse(args, config); err != nil {
			return nil, err
		}
	}
	if err := options.ValidateKubeletFlags(said.flags); err != nil {
		return nil, err
	}
	// This is about the machine that runs the tests.
	said.config.FailCgroupV1 = false
	gates := utilfeature.DefaultFeatureGate
	if err := validation.ValidateKubeletConfiguration(said.config, gates); err != nil {
		return nil, err
	}
	return said, parseAmounts(said.config)
}

// parseAmounts returns why the kubelet would end when it reads amounts that the validation of its
// configuration does not look at.
func parseAmounts(config *kubeletconfig.KubeletConfiguration) error {
	if _, err := reservation(config, nil); err != nil {
		return err
	}
	_, err := eviction.ParseThresholdConfig(
		nil, nil, config.EvictionSoft, config.EvictionSoftGracePeriod, nil)
	return err
}

func parse(args []string, config *kubeletconfig.KubeletConfiguration) (*settings, error) {
	said := &settings{flags: options.NewKubeletFlags(), config: config}
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	said.flags.AddFlags(set)
	options.AddKubeletConfigFlags(set, config)
	set.StringVar(&said.machine, "machine", "", "JSON file: what the machine has (required)")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if rest := set.Args(); len(rest) > 0 {
		return nil, fmt.Errorf("unknown argument %q", rest[0])
	}
	return said, nil
}

// readConfig decodes a KubeletConfiguration. It is stricter than the kubelet, which accepts unknown
// and repeated fields with a warning.
func readConfig(path string) (*kubeletconfig.KubeletConfiguration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, codecs, err := kubeletscheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		return nil, err
	}
	object, _, err := codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	config, ok := object.(*kubeletconfig.KubeletConfiguration)
	if !ok {
		return nil, fmt.Errorf("%s: not a KubeletConfiguration", path)
	}
	if config.EvictionHard == nil {
		config.EvictionHard = maps.Clone(eviction.DefaultEvictionHard)
	}
	return config, nil
}

func runKubelet(ctx context.Context, said *settings) error {
	if said.flags.HostnameOverride == "" || said.flags.KubeConfig == "" {
		return errors.New("--hostname-override and --kubeconfig are required")
	}
	machine, err := readMachine(said.machine, said.flags.HostnameOverride)
	if err != nil {
		return fmt.Errorf("--machine: %w", err)
	}
	reserved, err := reservation(said.config, machine.capacity())
	if err != nil {
		return err
	}
	client, heartbeat, err := clients(said)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	fake := fakecri.NewFakeRemoteRuntime()
	endpoint, err := fakecri.GenerateEndpoint()
	if err != nil {
		return err
	}
	if err := fake.Start(endpoint); err != nil {
		return err
	}
	defer fake.Stop()
	runtime, err := runtimeService(ctx, endpoint, runtimeTimeout)
	if err != nil {
		return err
	}
	if err := makeHollow(said); err != nil {
		return err
	}
	running := &images{runtime: runtime}
	manager := newContainerManager(machine, reserved, running)
	go serveVolumes(ctx, said.flags.RootDirectory, machine, running)
	kubelet := kubemark.NewHollowKubelet(
		said.flags, said.config, client, heartbeat, machine, fake.ImageService, runtime, manager)
	// With another recorder the kubelet reads /dev/kmsg.
	kubelet.KubeletDeps.Recorder = logRecorder()
	kubelet.Run(ctx) // It does not return.
	return nil
}

// makeHollow changes the settings that would reach for a part that a hollow kubelet does not have.
func makeHollow(said *settings) error {
	root, err := filepath.Abs(said.flags.RootDirectory)
	if err != nil {
		return err
	}
	said.flags.RootDirectory = root
	said.config.PodLogsDir = filepath.Join(root, "pod-logs")
	said.config.StaticPodPath = ""
	said.config.EnableServer = false
	said.config.ReadOnlyPort = 0
	said.config.CgroupsPerQOS = false
	said.config.EnforceNodeAllocatable = nil
	said.config.MakeIPTablesUtilChains = false
	// The reservation was computed from them before. The disk and the memory of the machine that
	// runs the tests say nothing about those of the instance.
	said.config.EvictionHard, said.config.EvictionSoft = nil, nil
	said.config.EvictionSoftGracePeriod = nil
	said.config.ImageGCHighThresholdPercent = 100
	return os.MkdirAll(said.config.PodLogsDir, 0o755)
}

// clients returns the client of the kubelet and that of its heartbeat, with the limits that the
// kubelet's command gives them.
func clients(said *settings) (client, heartbeat *kubernetes.Clientset, err error) {
	rest, err := clientcmd.BuildConfigFromFlags("", said.flags.KubeConfig)
	if err != nil {
		return nil, nil, err
	}
	rest.ContentType = said.config.ContentType
	rest.UserAgent = "kubelet/hollow"
	rest.QPS, rest.Burst = float32(said.config.KubeAPIQPS), int(said.config.KubeAPIBurst)
	if client, err = kubernetes.NewForConfig(rest); err != nil {
		return nil, nil, err
	}
	beat := *rest
	beat.QPS = -1
	beat.Timeout = min(said.config.NodeStatusUpdateFrequency.Duration,
		time.Duration(said.config.NodeLeaseDurationSeconds)*time.Second)
	heartbeat, err = kubernetes.NewForConfig(&beat)
	return client, heartbeat, err
}

// logRecorder returns a recorder that writes Events to the log.
func logRecorder() *record.FakeRecorder {
	recorder := record.NewFakeRecorder(256)
	go func() {
		for event := range recorder.Events {
			klog.InfoS("Event", "text", event)
		}
	}()
	return recorder
}
