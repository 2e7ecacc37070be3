import type { Fill } from "./colours";
import { counted, sum } from "./format";
import type { Layout, Tile } from "./layout";
import type { NodeView, Share } from "./protocol";

/** Colours of the picture, read from the style sheet so that both themes have one source. */
export interface Theme {
  free: string;
  frame: string;
  text: string;
  muted: string;
  coming: string;
  going: string;
  bad: string;
  chosen: string;
  gap: string;
}

export function themeOf(element: Element): Theme {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    free: read("free"),
    frame: read("frame"),
    text: read("text"),
    muted: read("muted"),
    coming: read("coming"),
    going: read("going"),
    bad: read("bad"),
    chosen: read("chosen"),
    gap: read("surface"),
  };
}

/** Pods thinner than this are not told apart. */
const SLICE = 4;

/** Draws one node into its place, erasing what was there. */
export function drawTile(
  paint: CanvasRenderingContext2D,
  node: NodeView,
  tile: Tile,
  fill: Fill,
  theme: Theme,
  options: { labelled: boolean; chosen: boolean; pulse: number },
): void {
  const { x, y, side } = tile;
  const radius = Math.min(4, side / 8);
  const pad = Math.min(3, side / 10);
  erase(paint, tile, theme, options.labelled);
  const coming = node.phase === "launching" || node.phase === "launched" || node.phase === "registered";
  const inside = side - 2 * pad;
  const split = (inside * tile.split) / side;
  const seam = Math.min(2, side / 20);
  const columns: [number, number, "cpu" | "memory", number][] = [
    [x + pad, split - seam / 2, "cpu", node.cpu],
    [x + pad + split + seam / 2, inside - split - seam / 2, "memory", node.memory],
  ];
  paint.fillStyle = theme.free;
  if (!node.owner) paint.globalAlpha = 0.55;
  for (const [left, width] of columns) paint.fillRect(left, y + pad, width, inside);
  for (const [left, width, of, room] of columns) {
    const used = drawShares(paint, node, node.pods, of, room, left, y + pad + inside, width, inside, fill, theme);
    if (node.promised.length) {
      paint.save();
      paint.globalAlpha = 0.25 + 0.3 * options.pulse;
      drawShares(paint, node, node.promised, of, room, left, y + pad + inside - used, width, inside - used, fill, theme, inside);
      paint.restore();
    }
  }
  paint.globalAlpha = 1;
  if (node.phase === "going") hatch(paint, x + pad, y + pad, inside, theme.going);
  frame(paint, x, y, side, radius, node, coming, theme);
  if (options.chosen) {
    paint.strokeStyle = theme.chosen;
    paint.lineWidth = 2;
    outline(paint, x - 1.5, y - 1.5, side + 3, radius + 1.5);
  }
  if (options.labelled) label(paint, node, tile, coming, theme);
}

/** Erases a tile with its frame and label. */
export function erase(paint: CanvasRenderingContext2D, tile: Tile, theme: Theme, labelled: boolean): void {
  paint.fillStyle = theme.gap;
  const edge = Math.min(2.5, tile.side / 12);
  paint.fillRect(tile.x - edge, tile.y - edge, tile.side + 2 * edge, tile.side + 2 * edge + (labelled ? 28 : 0));
}

/** Stacks pods from the bottom of a column; returns the height they take. */
function drawShares(
  paint: CanvasRenderingContext2D,
  node: NodeView,
  shares: Share[],
  of: "cpu" | "memory",
  room: number,
  left: number,
  bottom: number,
  width: number,
  most: number,
  fill: Fill,
  theme: Theme,
  whole = most,
): number {
  if (room <= 0) return 0;
  let taken = 0;
  const seams: number[] = [];
  for (const share of shares) {
    const height = Math.min((whole * share[of]) / room, most - taken);
    if (height <= 0) continue;
    paint.fillStyle = fill(node, share.workload);
    paint.fillRect(left, bottom - taken - height, width, height);
    const each = height / share.count;
    if (each >= SLICE) for (let line = 1; line <= share.count; line += 1) seams.push(bottom - taken - line * each);
    else if (whole >= 24) seams.push(bottom - taken - height);
    taken += height;
  }
  // After all pods: to change the colour costs more than to draw.
  paint.fillStyle = theme.free;
  for (const y of seams) paint.fillRect(left, y, width, whole >= 24 ? 1 : 0.6);
  return taken;
}

function frame(
  paint: CanvasRenderingContext2D,
  x: number,
  y: number,
  side: number,
  radius: number,
  node: NodeView,
  coming: boolean,
  theme: Theme,
): void {
  paint.lineWidth = side > 24 ? 1.5 : 1;
  paint.strokeStyle = theme.frame;
  if (coming) {
    paint.strokeStyle = theme.coming;
    paint.setLineDash([clamp(side / 14, 2, 7), clamp(side / 22, 1.5, 5)]);
  } else if (node.phase === "going") {
    paint.strokeStyle = theme.going;
  } else if (node.phase === "not ready") {
    paint.strokeStyle = theme.bad;
    paint.lineWidth = side > 24 ? 2.5 : 1.5;
  }
  outline(paint, x, y, side, radius);
  paint.setLineDash([]);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

function outline(paint: CanvasRenderingContext2D, x: number, y: number, side: number, radius: number): void {
  paint.beginPath();
  paint.roundRect(x + 0.5, y + 0.5, side - 1, side - 1, radius);
  paint.stroke();
}

function hatch(paint: CanvasRenderingContext2D, x: number, y: number, side: number, colour: string): void {
  paint.save();
  paint.beginPath();
  paint.rect(x, y, side, side);
  paint.clip();
  paint.strokeStyle = colour;
  paint.globalAlpha = 0.6;
  paint.lineWidth = Math.max(1, side / 40);
  const step = Math.max(5, side / 8);
  paint.beginPath();
  for (let at = -side; at < side; at += step) {
    paint.moveTo(x + at, y + side);
    paint.lineTo(x + at + side, y);
  }
  paint.stroke();
  paint.restore();
}

function label(paint: CanvasRenderingContext2D, node: NodeView, tile: Tile, coming: boolean, theme: Theme): void {
  const { x, y, side } = tile;
  paint.textBaseline = "top";
  paint.font = "600 11px system-ui, sans-serif";
  paint.fillStyle = theme.text;
  paint.fillText(clip(paint, node.type || node.name, side), x, y + side + 4);
  paint.font = "10px system-ui, sans-serif";
  paint.fillStyle = coming ? theme.coming : node.phase === "going" ? theme.going : theme.muted;
  const pods = sum(node.pods, "count");
  const said = coming || node.phase === "going" || node.phase === "not ready" ? node.phase : [node.capacity_type, counted(pods, "pod")].filter(Boolean).join(" · ");
  paint.fillText(clip(paint, said, side), x, y + side + 17);
}

function clip(paint: CanvasRenderingContext2D, text: string, width: number): string {
  if (paint.measureText(text).width <= width) return text;
  let shown = text;
  while (shown.length > 1 && paint.measureText(`${shown}…`).width > width) shown = shown.slice(0, -1);
  return `${shown}…`;
}

/** Draws everything anew. */
export function drawAll(
  paint: CanvasRenderingContext2D,
  nodes: Map<string, NodeView>,
  layout: Layout,
  fill: Fill,
  theme: Theme,
  options: { chosen: string | undefined; pulse: number; width: number; height: number },
): void {
  paint.fillStyle = theme.gap;
  paint.fillRect(0, 0, options.width, options.height);
  for (const tile of layout.tiles.values()) {
    const node = nodes.get(tile.name);
    if (node) {
      drawTile(paint, node, tile, fill, theme, {
        labelled: layout.labelled,
        chosen: tile.name === options.chosen,
        pulse: options.pulse,
      });
    }
  }
}
