package main

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"

	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

const etcdStart = time.Minute

// newAPIServerCommand returns kube-apiserver with an etcd of one member in the same process.
func newAPIServerCommand() *cobra.Command {
	command := apiserver.NewAPIServerCommand()
	folder := command.Flags().String("etcd-data-dir", "", "folder of the embedded etcd")
	serve := command.RunE
	command.RunE = func(cmd *cobra.Command, args []string) error {
		address, err := startEtcd(*folder)
		if err != nil {
			return err
		}
		if err := cmd.Flags().Set("etcd-servers", address); err != nil {
			return err
		}
		return serve(cmd, args)
	}
	return command
}

// startEtcd starts etcd on free ports of 127.0.0.1, without TLS and without fsync: the data is not
// kept. It returns the address for clients.
func startEtcd(folder string) (string, error) {
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config := embed.NewConfig()
	config.Dir = folder
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.LogLevel = "error"
	server, err := embed.StartEtcd(config)
	if err != nil {
		return "", fmt.Errorf("etcd does not start: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return "http://" + server.Clients[0].Addr().String(), nil
	case err := <-server.Err():
		return "", fmt.Errorf("etcd ended at start: %w", err)
	case <-time.After(etcdStart):
		return "", errors.New("etcd is not ready after a minute")
	}
}
