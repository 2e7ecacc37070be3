//go:build !minor_1_34 && !minor_1_35

package main

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	internalapi "k8s.io/cri-api/pkg/apis"
	cri "k8s.io/cri-client/pkg"
)

func runtimeService(
	ctx context.Context, endpoint string, timeout time.Duration,
) (internalapi.RuntimeService, error) {
	return cri.NewRemoteRuntimeService(ctx, endpoint, timeout, noop.NewTracerProvider(), false)
}
