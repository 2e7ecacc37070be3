package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// worldKinds are the kinds of objects that the world sends.
var worldKinds = map[string]schema.GroupVersionKind{}

func init() {
	for _, object := range []runtime.Object{
		&corev1.Pod{}, &corev1.Node{}, &corev1.Namespace{}, &corev1.PersistentVolume{},
		&corev1.PersistentVolumeClaim{}, &policyv1.PodDisruptionBudget{}, &appsv1.DaemonSet{},
		&storagev1.StorageClass{}, &storagev1.CSINode{}, &storagev1.VolumeAttachment{},
	} {
		kind := kindOf(object)
		worldKinds[kind.Kind] = kind
	}
}

// ofWorld says whether objects of a kind live in the world; others live in the store alone.
func ofWorld(kind schema.GroupVersionKind) bool { return worldKinds[kind.Kind] == kind }

// world is the other end of the pipe: pods, nodes and instances. It does nothing until it is asked;
// while it answers, time stands still. All methods but live are called with the store's mutex held.
type world struct {
	store  *store
	start  time.Time
	length time.Duration
	read   *json.Decoder
	write  *json.Encoder
	// next is when something happens in the world.
	next *time.Time
	// sooner wakes who waits for next.
	sooner chan struct{}
}

type fields map[string]any

// change is an object of the world that is new or has changed, or one that is gone.
type change struct {
	Kind    string          `json:"kind"`
	Object  json.RawMessage `json:"object"`
	Deleted string          `json:"deleted"`
}

// answer is that to any request.
type answer struct {
	Changes []change `json:"changes"`
	// Next is in microseconds since the start.
	Next       *int64 `json:"next"`
	InstanceID string `json:"instanceId"`
	Option
	Refused []Option `json:"refused"`
	State   string   `json:"state"`
	Result  string   `json:"result"`
}

func (a answer) orGone(kind schema.GroupVersionKind, key string) error {
	if a.Result == "gone" {
		return notFound(kind, key)
	}
	return nil
}

// ask sends a request and takes over what has changed.
func (w *world) ask(do string, more fields) answer {
	request := fields{"at": time.Since(w.start).Microseconds(), "do": do}
	for key, value := range more {
		request[key] = value
	}
	check(w.write.Encode(request))
	var got answer
	if err := w.read.Decode(&got); err != nil {
		fail(fmt.Errorf("no answer to %s: %w", do, err))
	}
	for _, c := range got.Changes {
		kind, known := worldKinds[c.Kind]
		if !known {
			fail(fmt.Errorf("the answer to %s changes a %q, which nobody knows", do, c.Kind))
		}
		if c.Deleted != "" {
			w.store.remove(kind, strings.TrimPrefix(c.Deleted, "/"))
		} else {
			w.store.put(w.store.decode(kind, c.Object))
		}
	}
	w.next = nil
	if got.Next != nil {
		next := w.start.Add(time.Duration(*got.Next) * time.Microsecond)
		w.next = &next
	}
	select {
	case w.sooner <- struct{}{}:
	default:
	}
	return got
}

// catchUp lets the world do what is due, so that nothing is written over what it has changed.
func (w *world) catchUp() {
	if w.next != nil && !w.next.After(time.Now()) {
		w.ask("wait", nil)
	}
}

// live lets time come to whatever happens in the world, until all of it has passed.
func (w *world) live() {
	end := w.start.Add(w.length)
	// Nobody knows yet when something happens, so the world is asked at once.
	w.next = &w.start
	for {
		w.store.mutex.Lock()
		if w.catchUp(); !time.Now().Before(end) {
			w.ask("over", fields{
				"cpuSeconds": cpuTime().Seconds(), "peakMebibytes": peakMebibytes(), "reconciles": reconciles(),
			})
			os.Exit(0)
		}
		due := end
		if w.next != nil && w.next.Before(end) {
			due = *w.next
		}
		w.store.mutex.Unlock()
		select {
		case <-time.After(time.Until(due)):
		case <-w.sooner:
		}
	}
}
