//go:build minor_1_34 || minor_1_35

package main

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	internalapi "k8s.io/cri-api/pkg/apis"
	cri "k8s.io/cri-client/pkg"
	"k8s.io/klog/v2"
)

func runtimeService(
	ctx context.Context, endpoint string, timeout time.Duration,
) (internalapi.RuntimeService, error) {
	logger := klog.FromContext(ctx)
	return cri.NewRemoteRuntimeService(endpoint, timeout, noop.NewTracerProvider(), &logger)
}
