import { describe, expect, test } from "vitest";
import { at, inOrder, layOut, next, size } from "./layout";
import type { Group } from "./arrange";
import type { NodeView } from "./protocol";
import { node } from "./sample";

const GIB = 2 ** 30;

function one(nodes: Iterable<NodeView>): Group[] {
  return [{ name: "", nodes: inOrder(nodes) }];
}

function many(count: number) {
  return Array.from({ length: count }, (_, index) =>
    node(`n${String(index).padStart(4, "0")}`, { cpu: 2000 * (1 + (index % 4)), memory: (1 + (index % 3)) * 8 * GIB }),
  );
}

describe("the layout", () => {
  test.each([1, 7, 60, 1000])("fits %i nodes without overlap", (count) => {
    const layout = layOut(one(many(count)), 1000, 700);
    expect(layout.height).toBeLessThanOrEqual(700.5);
    const tiles = [...layout.tiles.values()];
    expect(tiles).toHaveLength(count);
    for (const tile of tiles) {
      expect(tile.x).toBeGreaterThanOrEqual(0);
      expect(tile.x + tile.side).toBeLessThanOrEqual(1000.5);
    }
    const sorted = [...tiles].sort((a, b) => a.y - b.y || a.x - b.x);
    for (let index = 1; index < sorted.length; index += 1) {
      const [before, after] = [sorted[index - 1]!, sorted[index]!];
      if (before.y === after.y) expect(after.x).toBeGreaterThanOrEqual(before.x + before.side);
    }
  });

  test("draws cpu and memory to one scale of area", () => {
    const small = node("a", { cpu: 2000, memory: 8 * GIB });
    const large = node("b", { cpu: 16_000, memory: 128 * GIB });
    const { tiles } = layOut(one([small, large]), 1000, 700);
    const [a, b] = [tiles.get("a")!, tiles.get("b")!];
    const cpu = (tile: typeof a) => tile.split * tile.side;
    const memory = (tile: typeof a) => (tile.side - tile.split) * tile.side;
    expect(cpu(b) / cpu(a)).toBeCloseTo(8);
    expect(memory(b) / memory(a)).toBeCloseTo(16);
  });

  test("labels nodes only while they are large enough to read", () => {
    expect(layOut(one(many(8)), 1000, 700).labelled).toBe(true);
    expect(layOut(one(many(800)), 1000, 700).labelled).toBe(false);
  });

  test("has a smallest size: what does not fit is cut off, not invisible", () => {
    const { tiles } = layOut(one(many(20_000)), 300, 300);
    expect(Math.min(...[...tiles.values()].map((tile) => tile.side))).toBeGreaterThanOrEqual(6.9);
  });

  test("begins each group in a row of its own, with room for its heading", () => {
    const groups = [{ name: "a", nodes: inOrder(many(30)) }, { name: "b", nodes: inOrder([node("last")]) }];
    const layout = layOut(groups, 1000, 700);
    expect(layout.height).toBeLessThanOrEqual(700.5);
    expect(layout.groups.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(layout.groups[0]!.y).toBeGreaterThan(15);
    const last = layout.tiles.get("last")!;
    expect([last.group, last.x, last.y]).toEqual(["b", 0, layout.groups[1]!.y]);
    const before = Math.max(...layout.order.slice(0, -1).map((name) => layout.tiles.get(name)!.y + layout.tiles.get(name)!.side));
    expect(last.y - before).toBeGreaterThan(15);
    expect(next(layout, layout.order.at(-2), "ArrowRight")).toBe("last");
  });

  test("keeps its scale while a node more fits, so that others stand where they are", () => {
    const before = layOut(one(many(800)), 1000, 700);
    const after = layOut(one([...many(800), node("z", { cpu: 2000, memory: 8 * GIB })]), 1000, 690, { ...before, scale: before.scale * 0.97 });
    expect(after.scale).toBe(before.scale * 0.97);
    expect(after.height).toBeLessThanOrEqual(690);
    expect(layOut(one(many(400)), 1000, 700, before).scale).toBeGreaterThan(before.scale * 1.05);
    expect(layOut(one(many(1600)), 1000, 700, before).scale).toBeLessThan(before.scale);
  });

  test("is empty for no nodes", () => {
    expect(layOut(one([]), 1000, 700).order).toEqual([]);
  });

  test("puts a new node behind older ones of its size", () => {
    const later = node("a", { since: "2026-02-01T00:00:00+00:00" });
    expect(inOrder([later, node("b")]).map((each) => each.name)).toEqual(["b", "a"]);
  });

  test("counts an unknown size as something", () => {
    expect(size({ cpu: 0, memory: 0 })).toEqual({ cpu: 0.1, memory: 0.1 });
  });
});

describe("keys and the mouse", () => {
  const layout = layOut(one(many(40)), 600, 700);

  test("find the node under a point", () => {
    const tile = layout.tiles.get(layout.order[5]!)!;
    expect(at(layout, tile.x + 1, tile.y + 1)).toBe(tile.name);
    expect(at(layout, -5, -5)).toBeUndefined();
  });

  test("reach every node by the right arrow", () => {
    const seen = new Set<string>();
    let name = next(layout, undefined, "ArrowRight");
    while (name !== undefined && !seen.has(name)) {
      seen.add(name);
      name = next(layout, name, "ArrowRight");
    }
    expect(seen.size).toBe(40);
  });

  test("go a row down and back", () => {
    const first = layout.order[0]!;
    const below = next(layout, first, "ArrowDown")!;
    expect(layout.tiles.get(below)!.y).toBeGreaterThan(layout.tiles.get(first)!.y);
    expect(next(layout, below, "ArrowUp")).toBe(first);
    expect(next(layout, first, "ArrowUp")).toBe(first);
  });

  test("jump to the ends, and do nothing without nodes", () => {
    expect(next(layout, layout.order[3], "End")).toBe(layout.order.at(-1));
    expect(next(layout, layout.order[3], "Home")).toBe(layout.order[0]);
    expect(next(layOut([], 10, 10), undefined, "End")).toBeUndefined();
  });
});
