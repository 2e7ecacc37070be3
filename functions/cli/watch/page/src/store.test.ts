import { describe, expect, test, vi } from "vitest";
import type { Message } from "./protocol";
import { node, totals } from "./sample";
import { excess, MOST_POINTS, Store } from "./store";

function stored(...messages: Message[]): Store {
  const store = new Store();
  for (const message of messages) store.apply(message);
  return store;
}

describe("the store", () => {
  test("takes the whole, then changes of it", () => {
    const store = stored(
      { kind: "whole", synced: true, nodes: [node("a"), node("b")], totals: totals({ nodes: 2 }), cluster: "prod" },
      { kind: "change", nodes: [node("b", { phase: "going" })], gone: ["a"] },
    );
    expect([...store.nodes.keys()]).toEqual(["b"]);
    expect(store.nodes.get("b")!.phase).toBe("going");
    expect(store.cluster).toBe("prod");
    expect(store.totals.nodes).toBe(2);
  });

  test("forgets what a new whole does not name, as after a lost connection", () => {
    const store = stored(
      { kind: "whole", nodes: [node("a")], history: [[1, 2, 2, null, 1]] },
      { kind: "whole", nodes: [node("b")], history: [] },
    );
    expect([...store.nodes.keys()]).toEqual(["b"]);
    expect(store.history).toEqual([]);
  });

  test("keeps waiting pods that a change says nothing about", () => {
    const waiting = [{ key: "k", workload: "w", count: 1, cpu: 1, memory: 1, reason: "r", names: [], node: "", since: "" }];
    const store = stored({ kind: "whole", waiting }, { kind: "change", waiting: null }, { kind: "change" });
    expect(store.waiting).toEqual(waiting);
  });

  test("lays out anew only when a node comes, goes or has another size", () => {
    const store = stored({ kind: "whole", nodes: [node("a")] });
    const before = store.arrangement;
    store.apply({ kind: "change", nodes: [node("a", { phase: "going" })] });
    expect(store.arrangement).toBe(before);
    store.apply({ kind: "change", nodes: [node("a", { cpu: 1900 })] });
    expect(store.arrangement).toBe(before + 1);
    store.apply({ kind: "change", gone: ["a", "unknown"] });
    expect(store.arrangement).toBe(before + 2);
  });

  test("marks exactly the changed nodes to be drawn", () => {
    const store = stored({ kind: "whole", nodes: [node("a"), node("b")] });
    store.dirty.clear();
    store.apply({ kind: "change", nodes: [node("b")] });
    expect([...store.dirty]).toEqual(["b"]);
  });

  test("thins a long history and keeps its ends", () => {
    const store = new Store();
    for (let at = 0; at < 3 * MOST_POINTS; at += 1) store.apply({ kind: "change", point: [at, 1, 1, null, 1] });
    expect(store.history.length).toBeLessThanOrEqual(MOST_POINTS);
    expect(store.history[0]![0]).toBe(0);
    expect(store.history.at(-1)![0]).toBe(3 * MOST_POINTS - 1);
  });

  test("takes the points of the day before in a change, and keeps adding to them", () => {
    const store = stored({ kind: "whole", opened: 5, history: [[5, 1, 1, null, 1]] }, { kind: "change", history: [[1, 1, 1, null, 1], [5, 1, 1, null, 1]] });
    store.apply({ kind: "change", point: [6, 1, 1, null, 1] });
    expect(store.history.map((point) => point[0])).toEqual([1, 5, 6]);
    expect(store.opened).toBe(5);
  });

  test("says when it is synced", () => {
    expect(stored({ kind: "whole", synced: false }).synced).toBe(false);
    expect(stored({ kind: "change" }).synced).toBe(true);
  });

  test("counts ages by the recording's own time, which passes as fast as it is played, and stops", () => {
    vi.useFakeTimers();
    const store = stored({ kind: "change", recorded: { at: 10, length: 18, speed: 4 }, now: 5_000_000 });
    vi.advanceTimersByTime(1000);
    expect([store.now(), store.position()]).toEqual([5_004_000, 14]);
    store.freeze();
    vi.advanceTimersByTime(1000);
    expect([store.now(), store.position()]).toEqual([5_004_000, 14]);
    store.apply({ kind: "change", recorded: { at: 14, length: 18, speed: 4 }, now: 5_004_000 });
    vi.advanceTimersByTime(9000);
    expect(store.position()).toBe(18);
    vi.useRealTimers();
  });

  test("goes by the clock of this computer while a cluster is live", () => {
    const store = stored({ kind: "whole" });
    expect([store.recorded, store.position()]).toEqual([null, 0]);
    store.freeze();
    expect(Math.abs(store.now() - Date.now())).toBeLessThan(60_000);
  });
});

test("excess over the bound counts Dovetail's nodes alone", () => {
  const least = { planned: 21_000, bound: 20_000, pods: 3, left_out: 0 };
  expect(excess(totals({ price: 99_000, owned_price: 22_000 }), least)).toBeCloseTo(10);
  expect(excess(totals(), null)).toBeNull();
  expect(excess(totals(), { ...least, bound: 0 })).toBeNull();
});
