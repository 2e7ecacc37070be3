"""An embedded Kubernetes API server: in memory, loopback only, for local mode and tests.

It is faithful where an autoscaler, its tests and everyday kubectl would notice: versions and
conflicts, watches, grace and finalizers, patches, binding, eviction, custom
resources. It differs from a real server, on purpose, in these points:

* Authorization is not evaluated, and the access review APIs are not served.
* `managedFields` are not shown, and server-side apply is always by force.
* Dependents are deleted in the background or left behind, not first; only `v1` has Events.
* A list in pages is not a snapshot (events that fall between two pages come with a watch from
  the list's version).
* Protobuf bodies are refused (415): `kubectl create namespace` and its like need
  `--dry-run=client -o yaml | kubectl apply -f -`.
* No logs, exec, port-forward, tokens of service accounts, metrics, webhooks or aggregation.
* Quantities are checked, not rewritten to their canonical form.
* No controllers: what they do (status of workloads, garbage collection, taints by condition) is
  for a client of this server. Emptying a namespace is the one exception.
* Only the part of CEL that `infra.local.kube.schemas.cel` names is evaluated.
"""
