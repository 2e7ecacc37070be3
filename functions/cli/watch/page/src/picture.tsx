import { useEffect, useRef, useState } from "preact/hooks";
import { aspectOf, grouped, type Aspect } from "./arrange";
import type { Palette } from "./colours";
import { drawAll, drawTile, erase, themeOf, type Theme } from "./draw";
import { counted, described, dollars, sum } from "./format";
import { at, inOrder, layOut, next, type Layout, type Tile } from "./layout";
import type { NodeView } from "./protocol";
import type { Store } from "./store";

const EMPTY: Layout = { tiles: new Map(), order: [], rows: [], labelled: false, scale: 0, height: 0, groups: [] };
const PULSE_MS = 80;
/** More coming nodes than this are not animated. */
const MOST_PULSING = 60;

/** What is drawn of the nodes, and how. */
export interface Look {
  matches: (node: NodeView) => boolean;
  group: Aspect | undefined;
  colour: Aspect | undefined;
}

/** Draws the nodes whenever they change, in step with the screen; only what changed is redrawn. */
class Painter {
  layout = EMPTY;
  chosen: string | undefined;
  private paint: CanvasRenderingContext2D;
  private theme: Theme;
  private drawn = -1;
  private width = 0;
  private height = 0;
  private whole = true;
  private pulsed = 0;
  private readonly still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  constructor(
    private canvas: HTMLCanvasElement,
    private store: Store,
    private palette: Palette,
    private look: Look,
    private placed: (layout: Layout) => void,
  ) {
    this.paint = canvas.getContext("2d", { alpha: false })!;
    this.theme = themeOf(canvas);
  }

  /** Reads size and colours again; the next frame draws everything. */
  refresh(): void {
    const box = this.canvas.parentElement!.getBoundingClientRect();
    const ratio = devicePixelRatio || 1;
    this.width = Math.max(box.width, 50);
    this.height = Math.max(box.height, 50);
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.theme = themeOf(this.canvas);
    this.drawn = -1;
    this.whole = true;
  }

  see(look: Look): void {
    this.look = look;
    this.drawn = -1;
    this.whole = true;
  }

  choose(name: string | undefined): void {
    this.mark(this.chosen);
    this.chosen = name;
    this.mark(name);
  }

  private mark(name: string | undefined): void {
    if (name !== undefined) this.store.dirty.add(name);
  }

  frame(now: number): void {
    const { store, look } = this;
    if (this.drawn !== store.arrangement || this.moved()) {
      this.drawn = store.arrangement;
      const before = this.layout;
      const shown = inOrder(store.nodes.values()).filter(look.matches);
      this.layout = layOut(grouped(shown, look.group), this.width - 4, this.height - 4, before);
      this.placed(this.layout);
      for (const tile of this.layout.tiles.values()) {
        tile.x += 2;
        tile.y += 2;
      }
      if (before.labelled || this.layout.labelled || !before.tiles.size) this.whole = true;
      if (!this.whole) this.move(before.tiles, this.layout.tiles);
    }
    const pulse = this.still ? 0.5 : 0.5 + 0.5 * Math.sin(now / 350);
    if (!this.still && now - this.pulsed > PULSE_MS && store.totals.coming <= MOST_PULSING) {
      this.pulsed = now;
      for (const node of store.nodes.values()) if (node.promised.length) store.dirty.add(node.name);
    }
    const fill = this.palette.fill(look.colour);
    if (this.whole) {
      const { chosen, width, height } = this;
      drawAll(this.paint, store.nodes, this.layout, fill, this.theme, { chosen, pulse, width, height });
      this.whole = false;
    } else {
      for (const name of store.dirty) {
        const node = store.nodes.get(name);
        const tile = this.layout.tiles.get(name);
        if (!node || !tile) continue;
        const chosen = name === this.chosen;
        drawTile(this.paint, node, tile, fill, this.theme, { labelled: this.layout.labelled, chosen, pulse });
      }
    }
    store.dirty.clear();
  }

  /** Erases the tiles that stood elsewhere or are gone, and marks those to be drawn that are new there. */
  private move(before: Layout["tiles"], after: Layout["tiles"]): void {
    const stays = (one: Tile, other: Tile | undefined) => other && one.x === other.x && one.y === other.y && one.side === other.side;
    for (const tile of before.values()) if (!stays(tile, after.get(tile.name))) erase(this.paint, tile, this.theme, false);
    for (const tile of after.values()) if (!stays(tile, before.get(tile.name))) this.mark(tile.name);
  }

  /** Whether a node that changed has its place elsewhere now, or none. */
  private moved(): boolean {
    const { store, look, layout } = this;
    for (const name of store.dirty) {
      const node = store.nodes.get(name);
      if (!node) continue;
      const tile = layout.tiles.get(name);
      if (look.matches(node) !== (tile !== undefined)) return true;
      if (tile && look.group && tile.group !== aspectOf(node, look.group)) return true;
    }
    return false;
  }
}

interface Tip {
  name: string;
  x: number;
  y: number;
}

interface Props {
  store: Store;
  palette: Palette;
  look: Look;
  /** The nodes that match. */
  shown: NodeView[];
  theme: string;
  chosen: string | undefined;
  choose: (name: string | undefined) => void;
}

export function Picture({ store, palette, look, shown, theme, chosen, choose }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter>(null);
  const [tip, setTip] = useState<Tip>();
  const [headings, setHeadings] = useState<Layout["groups"]>([]);

  useEffect(() => {
    const made = new Painter(canvas.current!, store, palette, look, (layout) =>
      setHeadings((before) => (JSON.stringify(before) === JSON.stringify(layout.groups) ? before : layout.groups)),
    );
    painter.current = made;
    made.refresh();
    const watch = new ResizeObserver(() => made.refresh());
    watch.observe(canvas.current!.parentElement!);
    let running = requestAnimationFrame(function frame(now) {
      made.frame(now);
      running = requestAnimationFrame(frame);
    });
    return () => {
      watch.disconnect();
      cancelAnimationFrame(running);
    };
  }, [store, palette]);
  useEffect(() => painter.current?.refresh(), [theme]);
  useEffect(() => painter.current?.see(look), [look]);
  useEffect(() => painter.current?.choose(chosen), [chosen]);

  const point = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    return { name: at(painter.current!.layout, x, y), x, y };
  };
  const key = (event: KeyboardEvent) => {
    if (!/^(Arrow(Up|Down|Left|Right)|Home|End)$/.test(event.key)) return;
    event.preventDefault();
    choose(next(painter.current!.layout, chosen, event.key));
  };
  const node = tip && store.nodes.get(tip.name);
  const groups = look.group ? new Map(grouped(shown, look.group).map(({ name, nodes }) => [name, nodes])) : undefined;
  const pods = shown.reduce((count, each) => count + sum(each.pods, "count"), 0);
  return (
    <div class="picture">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label={`Picture of ${counted(shown.length, "node")} with ${counted(pods, "pod")}. Arrow keys choose a node; press T for the same as a table.`}
        onKeyDown={key}
        onClick={(event) => choose(point(event).name)}
        onMouseMove={(event) => {
          const { name, x, y } = point(event);
          setTip(name ? { name, x, y } : undefined);
        }}
        onMouseLeave={() => setTip(undefined)}
      />
      {groups &&
        headings.map(({ name, y }) => {
          const nodes = groups.get(name);
          return (
            <h3 key={name} class="group" style={{ top: `${y - 20}px` }}>
              {look.colour === look.group && nodes && <i style={{ background: palette.of(nodes[0]!, look.group!) }} />}
              {name} <span>{nodes && amounts(nodes)}</span>
            </h3>
          );
        })}
      {node && tip && (
        <div class={`tip ${tip.x > canvas.current!.clientWidth / 2 ? "leftwards" : ""}`} style={{ left: `${tip.x}px`, top: `${tip.y + 14}px` }} aria-hidden="true">
          {described(node)}
        </div>
      )}
      {!shown.length && (
        <p class="empty">
          {store.nodes.size ? "No node matches." : store.synced ? "No node stands. A pod that waits would bring one." : "Reading nodes and pods …"}
        </p>
      )}
    </div>
  );
}

/** How many nodes and pods, and what they cost. */
export function amounts(nodes: NodeView[]): string {
  const pods = nodes.reduce((count, node) => count + sum(node.pods, "count"), 0);
  const price = nodes.reduce((total, node) => total + (node.price ?? 0), 0);
  return `${counted(nodes.length, "node")}, ${counted(pods, "pod")}, ${dollars(price, 2)}/h`;
}
