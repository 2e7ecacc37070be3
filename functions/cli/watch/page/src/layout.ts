import type { NodeView } from "./protocol";

/** A square for a node: its left part is cpu, its right part memory, both to one scale of area. */
export interface Tile {
  name: string;
  x: number;
  y: number;
  side: number;
  /** Width of the cpu part. */
  split: number;
}

export interface Layout {
  tiles: Map<string, Tile>;
  /** In reading order. */
  order: string[];
  /** First index of each row in `order`. */
  rows: number[];
  labelled: boolean;
  height: number;
}

const GIB = 2 ** 30;
/** So much memory is drawn as large as one core: general-purpose nodes are halved. */
const GIB_PER_CORE = 4;
const GAP = 6;
const LABEL = 30;
const SMALLEST_LABELLED = 56;
const LARGEST = 320;
const SMALLEST = 7;

export function size(node: Pick<NodeView, "cpu" | "memory">): { cpu: number; memory: number } {
  return { cpu: Math.max(node.cpu / 1000, 0.1), memory: Math.max(node.memory / GIB / GIB_PER_CORE, 0.1) };
}

/** Order in which nodes are drawn: large first, then old first, so that a new one moves few. */
export function inOrder(nodes: Iterable<NodeView>): NodeView[] {
  return [...nodes].sort(
    (a, b) =>
      b.cpu + b.memory / GIB / GIB_PER_CORE * 1000 - (a.cpu + a.memory / GIB / GIB_PER_CORE * 1000) ||
      (a.since < b.since ? -1 : a.since > b.since ? 1 : a.name < b.name ? -1 : 1),
  );
}

/** Lays all nodes out so that they fill a width and fit a height, as large as that allows. */
export function layOut(nodes: NodeView[], width: number, height: number): Layout {
  const weights = nodes.map((node) => {
    const { cpu, memory } = size(node);
    return cpu + memory;
  });
  const largest = Math.sqrt(Math.max(1, ...weights));
  const smallest = Math.sqrt(Math.min(...weights, largest * largest));
  const most = LARGEST / largest;
  const labelled = fit(weights, width, height, most, LABEL);
  if (labelled * smallest >= SMALLEST_LABELLED) return place(nodes, weights, width, labelled, LABEL);
  const scale = Math.max(fit(weights, width, height, most, 0), SMALLEST / smallest);
  return place(nodes, weights, width, scale, 0);
}

/** Returns the largest scale at which all fit, at most `most`. */
function fit(weights: number[], width: number, height: number, most: number, label: number): number {
  let low = 0;
  let high = most;
  if (heightAt(weights, width, high, label) <= height) return high;
  for (let step = 0; step < 18; step += 1) {
    const middle = (low + high) / 2;
    if (heightAt(weights, width, middle, label) <= height) low = middle;
    else high = middle;
  }
  return low;
}

function gapAt(side: number): number {
  return Math.max(2, Math.min(GAP, side / 6));
}

function heightAt(weights: number[], width: number, scale: number, label: number): number {
  let x = 0;
  let y = 0;
  let tallest = 0;
  for (const weight of weights) {
    const side = scale * Math.sqrt(weight);
    const gap = gapAt(side);
    if (x > 0 && x + side > width) {
      y += tallest + gap + label;
      x = 0;
      tallest = 0;
    }
    x += side + gap;
    tallest = Math.max(tallest, side);
  }
  return y + tallest + label;
}

function place(nodes: NodeView[], weights: number[], width: number, scale: number, label: number): Layout {
  const tiles = new Map<string, Tile>();
  const order: string[] = [];
  const rows: number[] = [];
  let x = 0;
  let y = 0;
  let tallest = 0;
  nodes.forEach((node, index) => {
    const side = scale * Math.sqrt(weights[index]!);
    const gap = gapAt(side);
    if (x > 0 && x + side > width) {
      y += tallest + gap + label;
      x = 0;
      tallest = 0;
    }
    if (x === 0) rows.push(index);
    const split = (side * size(node).cpu) / weights[index]!;
    tiles.set(node.name, { name: node.name, x, y, side, split });
    order.push(node.name);
    x += side + gap;
    tallest = Math.max(tallest, side);
  });
  return { tiles, order, rows, labelled: label > 0, height: y + tallest + label };
}

/** Returns the name of the node at a point, or undefined. */
export function at(layout: Layout, x: number, y: number): string | undefined {
  for (const tile of layout.tiles.values()) {
    if (x >= tile.x && x <= tile.x + tile.side && y >= tile.y && y <= tile.y + tile.side) return tile.name;
  }
  return undefined;
}

/** Returns the node that an arrow key leads to from another one. */
export function next(layout: Layout, from: string | undefined, key: string): string | undefined {
  const { order, rows, tiles } = layout;
  if (!order.length) return undefined;
  const index = from === undefined ? -1 : order.indexOf(from);
  if (index < 0) return order[0];
  if (key === "Home") return order[0];
  if (key === "End") return order[order.length - 1];
  if (key === "ArrowRight") return order[Math.min(index + 1, order.length - 1)];
  if (key === "ArrowLeft") return order[Math.max(index - 1, 0)];
  const row = rows.findLastIndex((start) => start <= index);
  const target = row + (key === "ArrowDown" ? 1 : -1);
  const start = rows[target];
  if (start === undefined) return order[index];
  const here = tiles.get(order[index]!)!;
  const centre = here.x + here.side / 2;
  const there = order.slice(start, rows[target + 1] ?? order.length);
  const distance = (name: string) => Math.abs(tiles.get(name)!.x + tiles.get(name)!.side / 2 - centre);
  return there.reduce((best, name) => (distance(name) < distance(best) ? name : best));
}
