"""An embedded Kubernetes API server: in memory, loopback only, for local mode and tests.

It is faithful where an autoscaler, its tests and everyday kubectl would notice. It differs from a
real server, on purpose, in these points:

* `managedFields` are not shown, and server-side apply is always by force.
* Dependents are deleted in the background or left behind, not first; only `v1` has Events.
* A list in pages is not a snapshot (events that fall between two pages come with a watch from
  the list's version).
* Pods run no program: exec and port-forward are refused; there are no webhooks and no aggregation.
* Quantities are checked, not rewritten to their canonical form.
* No controllers: what they do (status of workloads, garbage collection, taints by condition) is
  for a client of this server. Emptying a namespace is the one exception.
* Only the part of CEL that `infra.local.kube.schemas.cel` names is evaluated.
"""
