package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// store is an API server, and the client and the informers' cache that Karpenter has of it. Calls
// that Karpenter does not make are nil and panic. Objects within are never changed, but replaced.
type store struct {
	client.Client
	// mutex guards everything here and the pipe to the world.
	mutex     sync.Mutex
	noticed   *sync.Cond
	notices   []notice
	tables    map[schema.GroupVersionKind]*table
	indexes   map[schema.GroupVersionKind]map[string]client.IndexerFunc
	informers map[schema.GroupVersionKind]*informer
	version   int64
	draw      *rand.Rand
	world     *world
}

// table has the objects of a kind, and their keys in order.
type table struct {
	objects map[string]client.Object
	keys    []string
}

// notice is a change that informers tell: old is nil for a new object, new for one that is gone.
type notice struct{ old, new client.Object }

func newStore() *store {
	s := &store{
		tables:    map[schema.GroupVersionKind]*table{},
		indexes:   map[schema.GroupVersionKind]map[string]client.IndexerFunc{},
		informers: map[schema.GroupVersionKind]*informer{},
		draw:      rand.New(rand.NewSource(1)),
	}
	s.noticed = sync.NewCond(&s.mutex)
	return s
}

func kindOf(object runtime.Object) schema.GroupVersionKind {
	kind, err := apiutil.GVKForObject(object, scheme.Scheme)
	check(err)
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return kind
}

func keyOf(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

func notFound(kind schema.GroupVersionKind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, name)
}

func (s *store) table(kind schema.GroupVersionKind) *table {
	if s.tables[kind] == nil {
		s.tables[kind] = &table{objects: map[string]client.Object{}}
	}
	return s.tables[kind]
}

// put keeps an object, which is the store's from now on, and lets the informers tell of it.
func (s *store) put(object client.Object) {
	kind, key := kindOf(object), keyOf(object.GetNamespace(), object.GetName())
	object.GetObjectKind().SetGroupVersionKind(kind)
	s.version++
	object.SetResourceVersion(strconv.FormatInt(s.version, 10))
	t := s.table(kind)
	old, has := t.objects[key]
	if !has {
		at, _ := slices.BinarySearch(t.keys, key)
		t.keys = slices.Insert(t.keys, at, key)
	}
	t.objects[key] = object
	s.tell(notice{old, object})
}

func (s *store) remove(kind schema.GroupVersionKind, key string) {
	t := s.table(kind)
	if old, has := t.objects[key]; has {
		at, _ := slices.BinarySearch(t.keys, key)
		t.keys = slices.Delete(t.keys, at, at+1)
		delete(t.objects, key)
		s.tell(notice{old, nil})
	}
}

// -- reads --------------------------------------------------------------------------------------

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	kind := kindOf(into)
	found, has := s.table(kind).objects[keyOf(key.Namespace, key.Name)]
	if !has {
		return notFound(kind, key.Name)
	}
	copyTo(into, found)
	return nil
}

func copyTo(into, from client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}

func (s *store) List(_ context.Context, into client.ObjectList, given ...client.ListOption) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	asked := (&client.ListOptions{}).ApplyOptions(given)
	kind := kindOf(into)
	t := s.table(kind)
	found := []runtime.Object{}
	for _, key := range t.keys {
		object := t.objects[key]
		if asked.Namespace != "" && object.GetNamespace() != asked.Namespace || !s.selects(asked, kind, object) {
			continue
		}
		if asked.UnsafeDisableDeepCopy != nil && *asked.UnsafeDisableDeepCopy {
			found = append(found, object)
		} else {
			found = append(found, object.DeepCopyObject())
		}
	}
	return meta.SetList(into, found)
}

func (s *store) selects(asked *client.ListOptions, kind schema.GroupVersionKind, object client.Object) bool {
	if asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	if asked.FieldSelector != nil {
		for _, wanted := range asked.FieldSelector.Requirements() {
			if !slices.Contains(s.indexes[kind][wanted.Field](object), wanted.Value) {
				return false
			}
		}
	}
	return true
}

func (s *store) Scheme() *runtime.Scheme { return scheme.Scheme }

func (s *store) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(object, scheme.Scheme)
}

// -- writes -------------------------------------------------------------------------------------

func (s *store) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if object.GetName() == "" {
		object.SetName(fmt.Sprintf("%s%06x", object.GetGenerateName(), s.draw.Intn(1<<24)))
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID(fmt.Sprintf("%016x%016x", s.draw.Uint64(), s.draw.Uint64())))
	}
	object.SetCreationTimestamp(metav1.Now())
	object.SetGeneration(1)
	made := s.decode(kindOf(object), encode(object))
	s.put(made)
	copyTo(object, made)
	return nil
}

func (s *store) Delete(_ context.Context, object client.Object, given ...client.DeleteOption) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	kind, key := kindOf(object), keyOf(object.GetNamespace(), object.GetName())
	old, has := s.table(kind).objects[key]
	if !has {
		return notFound(kind, key)
	}
	if ofWorld(kind) {
		asked := (&client.DeleteOptions{}).ApplyOptions(given)
		answer := s.world.ask("delete", fields{
			"kind": kind.Kind, "name": key, "uid": old.GetUID(), "gracePeriodSeconds": asked.GracePeriodSeconds,
		})
		return answer.orGone(kind, key)
	}
	if len(old.GetFinalizers()) == 0 {
		s.remove(kind, key)
	} else if old.GetDeletionTimestamp() == nil {
		dying := old.DeepCopyObject().(client.Object)
		now := metav1.Now().Rfc3339Copy()
		dying.SetDeletionTimestamp(&now)
		dying.SetGeneration(old.GetGeneration() + 1)
		s.put(dying)
	}
	return nil
}

func (s *store) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return s.patch(object, patch, false)
}

// patch changes the status of an object, or everything else, as an API server does.
func (s *store) patch(object client.Object, patch client.Patch, status bool) error {
	data, err := patch.Data(object)
	check(err)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.world.catchUp()
	kind, key := kindOf(object), keyOf(object.GetNamespace(), object.GetName())
	old, has := s.table(kind).objects[key]
	if !has {
		return notFound(kind, key)
	}
	text := encode(old)
	var merged []byte
	if patch.Type() == types.StrategicMergePatchType {
		merged, err = strategicpatch.StrategicMergePatch(text, data, old)
	} else {
		merged, err = jsonpatch.MergePatch(text, data)
	}
	check(err)
	var before, after map[string]any
	check(json.Unmarshal(text, &before))
	check(json.Unmarshal(merged, &after))
	if version := after["metadata"].(map[string]any)["resourceVersion"]; version != old.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key,
			fmt.Errorf("is at %s, not at %s", old.GetResourceVersion(), version))
	}
	if status {
		before["status"], after = after["status"], before
	} else {
		after["status"] = before["status"]
	}
	made := s.decode(kind, encode(after))
	if reflect.DeepEqual(made, old) {
		copyTo(object, old)
		return nil
	}
	if made.GetGeneration() > 0 && !reflect.DeepEqual(before["spec"], after["spec"]) {
		made.SetGeneration(made.GetGeneration() + 1)
	}
	if ofWorld(kind) {
		if err := s.world.ask("write", fields{"kind": kind.Kind, "object": made}).orGone(kind, key); err != nil {
			return err
		}
		if now, has := s.table(kind).objects[key]; has {
			made = now
		}
	} else if made.GetDeletionTimestamp() != nil && len(made.GetFinalizers()) == 0 {
		s.remove(kind, key)
	} else {
		s.put(made)
	}
	copyTo(object, made)
	return nil
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	check(err)
	return text
}

func (s *store) decode(kind schema.GroupVersionKind, text []byte) client.Object {
	made, err := scheme.Scheme.New(kind)
	check(err)
	check(json.Unmarshal(text, made))
	made.GetObjectKind().SetGroupVersionKind(kind)
	return made.(client.Object)
}

// subresource is the status of an object, or the eviction of a pod.
type subresource struct {
	client.SubResourceClient
	store *store
}

func (s *store) Status() client.SubResourceWriter              { return subresource{store: s} }
func (s *store) SubResource(_ string) client.SubResourceClient { return subresource{store: s} }

func (r subresource) Patch(
	_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption,
) error {
	return r.store.patch(object, patch, true)
}

// Create evicts a pod.
func (r subresource) Create(
	_ context.Context, pod client.Object, _ client.Object, _ ...client.SubResourceCreateOption,
) error {
	r.store.mutex.Lock()
	defer r.store.mutex.Unlock()
	key := keyOf(pod.GetNamespace(), pod.GetName())
	answer := r.store.world.ask("evict", fields{"pod": key, "uid": pod.GetUID()})
	if answer.Result == "refused" {
		return apierrors.NewTooManyRequests("a PodDisruptionBudget forbids it", 10)
	}
	return answer.orGone(corev1.SchemeGroupVersion.WithKind("Pod"), key)
}

// -- informers ----------------------------------------------------------------------------------

// informer tells the changes of a kind.
type informer struct {
	cache.Informer
	store    *store
	handlers []toolscache.ResourceEventHandler
}

func (i *informer) HasSynced() bool { return true }

func (i *informer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.store.mutex.Lock()
	defer i.store.mutex.Unlock()
	i.handlers = append(i.handlers, handler)
	return i, nil
}

func (s *store) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	kind := kindOf(object)
	if s.informers[kind] == nil {
		s.informers[kind] = &informer{store: s}
	}
	return s.informers[kind], nil
}

func (s *store) GetInformerForKind(
	context.Context, schema.GroupVersionKind, ...cache.InformerGetOption,
) (cache.Informer, error) {
	return nil, fmt.Errorf("informers are asked for by object")
}

func (s *store) RemoveInformer(context.Context, client.Object) error { return nil }

func (s *store) WaitForCacheSync(context.Context) bool { return true }

func (s *store) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	kind := kindOf(object)
	if s.indexes[kind] == nil {
		s.indexes[kind] = map[string]client.IndexerFunc{}
	}
	s.indexes[kind][field] = extract
	return nil
}

func (s *store) tell(n notice) {
	s.notices = append(s.notices, n)
	s.noticed.Signal()
}

// Start tells all changes in the order in which they happen, until the process ends.
func (s *store) Start(context.Context) error {
	for {
		s.mutex.Lock()
		for len(s.notices) == 0 {
			s.noticed.Wait()
		}
		first := s.notices[0]
		s.notices = s.notices[1:]
		var handlers []toolscache.ResourceEventHandler
		if i := s.informers[kindOf(first.any())]; i != nil {
			handlers = i.handlers
		}
		s.mutex.Unlock()
		for _, handler := range handlers {
			switch {
			case first.old == nil:
				handler.OnAdd(first.new, false)
			case first.new == nil:
				handler.OnDelete(first.old)
			default:
				handler.OnUpdate(first.old, first.new)
			}
		}
	}
}

func (n notice) any() client.Object {
	if n.new != nil {
		return n.new
	}
	return n.old
}
