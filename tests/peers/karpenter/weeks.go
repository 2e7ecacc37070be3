package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/test/v1alpha1"
)

// Beginning is the first line that the world sends.
type Beginning struct {
	Start      time.Time           `json:"start"`
	Seconds    int64               `json:"seconds"`
	NodePools  []json.RawMessage   `json:"nodePools"`
	DaemonSets []*appsv1.DaemonSet `json:"daemonSets"`
	Types      []InstanceType      `json:"types"`
}

// weeks runs Karpenter with all of its controllers in virtual time, beside a world at the other end
// of the pipe. A bubble of virtual time exists within a test only.
func weeks() {
	// Threads would make the order of things differ more between runs.
	runtime.GOMAXPROCS(1)
	testing.Main(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "weeks", F: func(t *testing.T) { synctest.Test(t, live) }}}, nil, nil)
}

func live(*testing.T) {
	read := json.NewDecoder(os.Stdin)
	var given Beginning
	check(read.Decode(&given))
	time.Sleep(time.Until(given.Start))
	logger := funcr.New(func(_, said string) {
		fmt.Fprintln(os.Stderr, time.Now().UTC().Format(time.RFC3339), said)
	}, funcr.Options{})
	log.SetLogger(logger)
	klog.SetLogger(logger)

	s := newStore()
	s.world = &world{
		store: s, start: given.Start, length: time.Duration(given.Seconds) * time.Second,
		read: read, write: json.NewEncoder(os.Stdout), sooner: make(chan struct{}, 1),
	}
	types, exotic := Problem{Types: given.Types}.instanceTypes()
	provider := &cloud{
		world: s.world, types: types, exotic: exotic,
		refused: map[Option]time.Time{}, claims: map[string]*v1.NodeClaim{},
	}
	ctx := asShipped(logger)
	runs := newManager(ctx, s, logger)
	cluster := state.NewCluster(clock.RealClock{}, s, provider)
	recorder := events.NewRecorder(&record.FakeRecorder{})
	for _, controller := range controllers.NewControllers(
		ctx, runs, clock.RealClock{}, s, recorder, provider, provider, cluster, nil,
	) {
		check(controller.Register(ctx, runs))
	}
	go func() { check(runs.Start(ctx)) }()
	synctest.Wait()

	class := &v1alpha1.TestNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.StatusConditions().SetTrue(status.ConditionReady)
	check(s.Create(ctx, class))
	for _, daemons := range given.DaemonSets {
		check(s.Create(ctx, daemons))
	}
	for _, raw := range given.NodePools {
		pool, err := readPool(raw)
		check(err)
		pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{
			Group: v1alpha1.Group, Kind: "TestNodeClass", Name: class.Name,
		}
		check(s.Create(ctx, pool))
	}
	s.world.live()
}

// asShipped has Karpenter's options as they are without any flag, but no metrics of the cluster and
// no election of a leader.
func asShipped(logger logr.Logger) context.Context {
	shipped := &options.Options{}
	flags := &options.FlagSet{FlagSet: flag.NewFlagSet("karpenter", flag.ContinueOnError)}
	shipped.AddFlags(flags)
	check(shipped.Parse(flags, "--disable-cluster-state-observability=true", "--disable-leader-election=true"))
	return options.ToContext(log.IntoContext(context.Background(), logger), shipped)
}

// newManager is a manager as Karpenter's operator makes it, with the store for an API server.
func newManager(ctx context.Context, s *store, logger logr.Logger) manager.Manager {
	made, err := manager.New(&rest.Config{}, manager.Options{
		Logger:      logger,
		Metrics:     server.Options{BindAddress: "0"},
		BaseContext: func() context.Context { return ctx },
		NewCache:    func(*rest.Config, cache.Options) (cache.Cache, error) { return s, nil },
		NewClient:   func(*rest.Config, client.Options) (client.Client, error) { return s, nil },
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	check(err)
	index(ctx, made, &corev1.Pod{}, "spec.nodeName", func(pod *corev1.Pod) string { return pod.Spec.NodeName })
	index(ctx, made, &corev1.Node{}, "spec.providerID", func(node *corev1.Node) string { return node.Spec.ProviderID })
	index(ctx, made, &storagev1.VolumeAttachment{}, "spec.nodeName", func(a *storagev1.VolumeAttachment) string { return a.Spec.NodeName })
	index(ctx, made, &v1.NodeClaim{}, "status.providerID", func(claim *v1.NodeClaim) string { return claim.Status.ProviderID })
	for field, of := range map[string]func(*v1.NodeClassReference) string{
		"group": func(class *v1.NodeClassReference) string { return class.Group },
		"kind":  func(class *v1.NodeClassReference) string { return class.Kind },
		"name":  func(class *v1.NodeClassReference) string { return class.Name },
	} {
		index(ctx, made, &v1.NodeClaim{}, "spec.nodeClassRef."+field, func(claim *v1.NodeClaim) string {
			return of(claim.Spec.NodeClassRef)
		})
		index(ctx, made, &v1.NodePool{}, "spec.template.spec.nodeClassRef."+field, func(pool *v1.NodePool) string {
			return of(pool.Spec.Template.Spec.NodeClassRef)
		})
	}
	return made
}

// index lets objects be listed by the value of a field.
func index[T client.Object](ctx context.Context, runs manager.Manager, kind T, field string, value func(T) string) {
	check(runs.GetFieldIndexer().IndexField(ctx, kind, field, func(object client.Object) []string {
		return []string{value(object.(T))}
	}))
}

// reconciles returns how often each controller has reconciled.
func reconciles() map[string]float64 {
	found := map[string]float64{}
	families, err := metrics.Registry.Gather()
	check(err)
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, metric := range family.GetMetric() {
				for _, label := range metric.GetLabel() {
					if label.GetName() == "controller" {
						found[label.GetValue()] += metric.GetCounter().GetValue()
					}
				}
			}
		}
	}
	return found
}
