package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	volumeDriver = "ebs.csi.aws.com"
	pluginPeriod = time.Second
)

// volumes is what the node service of the EBS CSI driver reports to the kubelet, which writes it to
// the CSINode and, the topology, to the labels of the Node.
type volumes struct {
	// Image is a part of the name of the driver's image.
	Image string `json:"image"`
	// Limit is the number of volumes that can be attached.
	Limit int64 `json:"limit"`
	// Topology is where the node is, by label.
	Topology map[string]string `json:"topology"`
	Instance string            `json:"instance"`
}

// driver is the node service of a CSI driver that mounts nothing.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	machine *volumes
	socket  string
}

// serveVolumes registers the driver with the kubelet once a container of it runs on the node.
func serveVolumes(ctx context.Context, root string, machine *machine, running *images) {
	if machine.Volumes == nil {
		return
	}
	for !running.one(machine.Volumes.Image) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pluginPeriod):
		}
	}
	served := &driver{machine: machine.Volumes, socket: filepath.Join(root, "csi.sock")}
	if err := served.serve(filepath.Join(root, "plugins_registry")); err != nil {
		klog.ErrorS(err, "The CSI driver does not start")
	}
}

func (d *driver) serve(registry string) error {
	service, registrar := grpc.NewServer(), grpc.NewServer()
	csi.RegisterIdentityServer(service, d)
	csi.RegisterNodeServer(service, d)
	registration.RegisterRegistrationServer(registrar, d)
	if err := os.MkdirAll(registry, 0o755); err != nil {
		return err
	}
	// The kubelet calls the driver as soon as it sees the second socket.
	sockets := []string{d.socket, filepath.Join(registry, volumeDriver+".sock")}
	for i, server := range []*grpc.Server{service, registrar} {
		listener, err := net.Listen("unix", sockets[i])
		if err != nil {
			return err
		}
		go func() { _ = server.Serve(listener) }()
	}
	return nil
}

func (d *driver) GetInfo(
	context.Context, *registration.InfoRequest,
) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: volumeDriver, Endpoint: d.socket,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	klog.InfoS("The CSI driver is registered", "ok", status.PluginRegistered, "error", status.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *driver) NodeGetInfo(
	context.Context, *csi.NodeGetInfoRequest,
) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{
		NodeId: d.machine.Instance, MaxVolumesPerNode: d.machine.Limit,
		AccessibleTopology: &csi.Topology{Segments: d.machine.Topology},
	}, nil
}

func (d *driver) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (d *driver) NodePublishVolume(
	context.Context, *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	return &csi.NodePublishVolumeResponse{}, nil
}

func (d *driver) NodeUnpublishVolume(
	context.Context, *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
