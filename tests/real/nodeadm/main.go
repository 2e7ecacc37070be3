// Command judge prints what nodeadm makes of user data: the configuration it generates for the
// kubelet, what of the user's goes above it, and the flags.
//
// The file has a JSON list of machines, each with its user data and instance type; printed is a JSON
// list of as many verdicts. The metadata service is one of its own, the kubelet one that knows its
// version alone.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/awslabs/amazon-eks-ami/nodeadm/internal/api"
	"github.com/awslabs/amazon-eks-ami/nodeadm/internal/configprovider"
	"github.com/awslabs/amazon-eks-ami/nodeadm/internal/kubelet"
	"github.com/awslabs/amazon-eks-ami/nodeadm/internal/system"
	"github.com/awslabs/amazon-eks-ami/nodeadm/internal/util"
)

const kubeletVersion = "#!/bin/sh\necho Kubernetes v1.36.3\n"

type machine struct {
	UserData string `json:"userData"`
	Type     string `json:"type"`
	Zone     string `json:"zone"`
	ID       string `json:"id"`
}

type verdict struct {
	Error   string            `json:"error"`
	Config  any               `json:"config"`
	DropIn  map[string]any    `json:"dropIn"`
	Flags   map[string]string `json:"flags"`
	More    []string          `json:"more"`
	Storage string            `json:"storage"`
	Cores   int               `json:"cores"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one file")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var machines []machine
	if err := json.Unmarshal(text, &machines); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "judge")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := os.WriteFile(filepath.Join(folder, "kubelet"), []byte(kubeletVersion), 0o755); err != nil {
		return err
	}
	os.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	userData := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/latest/api/token":
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
			fmt.Fprint(w, "token")
		case "/latest/user-data":
			fmt.Fprint(w, userData)
		case "/latest/meta-data/local-ipv4":
			fmt.Fprint(w, "10.0.0.4")
		default:
			fmt.Fprint(w, "fd00::4")
		}
	}))
	defer server.Close()
	os.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.URL)
	verdicts := make([]verdict, len(machines))
	for i, one := range machines {
		userData = one.UserData
		if err := verdicts[i].judge(one); err != nil {
			verdicts[i].Error = err.Error()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(verdicts)
}

func (v *verdict) judge(one machine) error {
	config, err := configprovider.NewUserDataConfigProvider().Provide()
	if err != nil {
		return err
	}
	if err := api.ValidateNodeConfig(config); err != nil {
		return err
	}
	config.Status.Instance = api.InstanceDetails{
		ID: one.ID, Type: one.Type, AvailabilityZone: one.Zone, Region: "us-east-1",
	}
	daemon := reflect.ValueOf(kubelet.NewKubeletDaemon(nil))
	// Its type has no name outside of the package.
	results := daemon.MethodByName("GenerateKubeletConfig").Call([]reflect.Value{reflect.ValueOf(config)})
	if err, ok := results[1].Interface().(error); ok && err != nil {
		return err
	}
	v.Config = results[0].Interface()
	kind := metav1.TypeMeta{Kind: "KubeletConfiguration", APIVersion: "kubelet.config.k8s.io/v1beta1"}
	if v.DropIn, err = util.DocumentMerge(kind, config.Spec.Kubelet.Config); err != nil {
		return err
	}
	v.Flags = map[string]string{}
	said := daemon.Elem().FieldByName("flags")
	for _, name := range said.MapKeys() {
		v.Flags[name.String()] = said.MapIndex(name).String()
	}
	v.More = slices.Clone(config.Spec.Kubelet.Flags)
	v.Storage = string(config.Spec.Instance.LocalStorage.Strategy)
	cores, err := system.GetMilliNumCores()
	v.Cores = cores / 1000
	return err
}
