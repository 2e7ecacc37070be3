import type { Group } from "./arrange";
import type { NodeView } from "./protocol";

/** A square for a node: its left part is cpu, its right part memory, both to one scale of area. */
export interface Tile {
  name: string;
  group: string;
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
  /** Pixels for the square root of a weight. */
  scale: number;
  height: number;
  /** Where each group begins: its heading is above. */
  groups: { name: string; y: number }[];
}

const GIB = 2 ** 30;
/** So much memory is drawn as large as one core: general-purpose nodes are halved. */
const GIB_PER_CORE = 4;
const GAP = 6;
const LABEL = 30;
const HEADING = 24;
const SMALLEST_LABELLED = 56;
const LARGEST = 320;
const SMALLEST = 7;
/** A layout is kept until it could be so many times as large. */
const ROOM = 1.05;

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

/** Lays groups of nodes out so that they fill a width and fit a height, as large as that allows, or nearly so as before. */
export function layOut(groups: Group[], width: number, height: number, before?: Layout): Layout {
  const weights = groups.map(({ nodes }) => nodes.map((node) => size(node).cpu + size(node).memory));
  const all = weights.flat();
  const largest = Math.sqrt(all.reduce((most, weight) => Math.max(most, weight), 1));
  const smallest = Math.sqrt(all.reduce((least, weight) => Math.min(least, weight), largest * largest));
  const most = LARGEST / largest;
  const labelled = fit(groups, weights, width, height, most, LABEL);
  if (labelled * smallest >= SMALLEST_LABELLED) return place(groups, weights, width, labelled, LABEL);
  const fits = (scale: number) => walk(groups, weights, width, scale, 0) <= height;
  // A node more or less lets the others stand where they are: what does not move is not drawn.
  if (before && !before.labelled && before.scale <= most && fits(before.scale) && !fits(before.scale * ROOM))
    return place(groups, weights, width, before.scale, 0);
  const scale = Math.max(fit(groups, weights, width, height, most, 0), SMALLEST / smallest);
  return place(groups, weights, width, scale, 0);
}

/** Returns the largest scale at which all fit, at most `most`. */
function fit(groups: Group[], weights: number[][], width: number, height: number, most: number, label: number): number {
  let low = 0;
  let high = most;
  if (walk(groups, weights, width, high, label) <= height) return high;
  for (let step = 0; step < 18; step += 1) {
    const middle = (low + high) / 2;
    if (walk(groups, weights, width, middle, label) <= height) low = middle;
    else high = middle;
  }
  return low;
}

function gapAt(side: number): number {
  return Math.max(2, Math.min(GAP, side / 6));
}

/** Visits each node's place; returns the height of all. A group with a name has a heading above it. */
function walk(
  groups: Group[],
  weights: number[][],
  width: number,
  scale: number,
  label: number,
  visit?: (group: number, index: number, x: number, y: number, side: number, starts: boolean) => void,
): number {
  let y = 0;
  weights.forEach((row, group) => {
    if (groups[group]!.name) y += HEADING;
    let x = 0;
    let tallest = 0;
    let between = 0;
    row.forEach((weight, index) => {
      const side = scale * Math.sqrt(weight);
      const gap = gapAt(side);
      if (x > 0 && x + side > width) {
        y += tallest + gap + label;
        x = 0;
        tallest = 0;
      }
      visit?.(group, index, x, y, side, x === 0);
      x += side + gap;
      between = gap;
      tallest = Math.max(tallest, side);
    });
    y += tallest + label + (group < weights.length - 1 ? between : 0);
  });
  return y;
}

function place(groups: Group[], weights: number[][], width: number, scale: number, label: number): Layout {
  const layout: Layout = { tiles: new Map(), order: [], rows: [], labelled: label > 0, scale, height: 0, groups: [] };
  layout.height = walk(groups, weights, width, scale, label, (group, index, x, y, side, starts) => {
    const { name, nodes } = groups[group]!;
    const node = nodes[index]!;
    if (index === 0 && name) layout.groups.push({ name, y });
    if (starts) layout.rows.push(layout.order.length);
    const split = (side * size(node).cpu) / weights[group]![index]!;
    layout.tiles.set(node.name, { name: node.name, group: name, x, y, side, split });
    layout.order.push(node.name);
  });
  return layout;
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
