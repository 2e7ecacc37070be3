import type { NodeView, Totals } from "./protocol";

// Values for tests: small, valid, and every field can be given.

export function node(name: string, more: Partial<NodeView> = {}): NodeView {
  return {
    name,
    instance: `i-${name}`,
    type: "m5.large",
    zone: "us-east-1a",
    capacity_type: "spot",
    owner: "default",
    owner_kind: "Provisioner",
    ours: true,
    price: 32_000,
    cpu: 2000,
    memory: 8 * 2 ** 30,
    room: 29,
    phase: "initialized",
    waits_for: "",
    reason: "",
    blocked: "",
    since: "2026-01-01T00:00:00+00:00",
    pods: [{ workload: "default/web", count: 3, cpu: 1500, memory: 2 ** 31, names: ["default/web-1", "default/web-2", "default/web-3"] }],
    promised: [],
    plan: "p1",
    ...more,
  };
}

export function totals(more: Partial<Totals> = {}): Totals {
  return { nodes: 1, owned: 1, coming: 0, going: 0, pods: 3, waiting: 0, price: 32_000, owned_price: 32_000, unpriced: 0, ...more };
}
