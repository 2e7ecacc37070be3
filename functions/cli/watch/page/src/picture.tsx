import { useEffect, useRef, useState } from "preact/hooks";
import type { Colours } from "./colours";
import { drawAll, drawTile, themeOf, type Theme } from "./draw";
import { counted, described } from "./format";
import { at, inOrder, layOut, next, type Layout } from "./layout";
import type { Store } from "./store";

const EMPTY: Layout = { tiles: new Map(), order: [], rows: [], labelled: false, height: 0 };
const PULSE_MS = 80;
/** More coming nodes than this are not animated. */
const MOST_PULSING = 60;

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
    private colours: Colours,
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
    const { store } = this;
    if (this.drawn !== store.arrangement) {
      this.drawn = store.arrangement;
      this.layout = layOut(inOrder(store.nodes.values()), this.width - 4, this.height - 4);
      for (const tile of this.layout.tiles.values()) {
        tile.x += 2;
        tile.y += 2;
      }
      this.whole = true;
    }
    const pulse = this.still ? 0.5 : 0.5 + 0.5 * Math.sin(now / 350);
    if (!this.still && now - this.pulsed > PULSE_MS && store.totals.coming <= MOST_PULSING) {
      this.pulsed = now;
      for (const node of store.nodes.values()) if (node.promised.length) store.dirty.add(node.name);
    }
    if (this.whole) {
      const { chosen, width, height } = this;
      drawAll(this.paint, store.nodes, this.layout, this.colours, this.theme, { chosen, pulse, width, height });
      this.whole = false;
    } else {
      for (const name of store.dirty) {
        const node = store.nodes.get(name);
        const tile = this.layout.tiles.get(name);
        if (!node || !tile) continue;
        const chosen = name === this.chosen;
        drawTile(this.paint, node, tile, this.colours, this.theme, { labelled: this.layout.labelled, chosen, pulse });
      }
    }
    store.dirty.clear();
  }
}

interface Tip {
  name: string;
  x: number;
  y: number;
}

interface Props {
  store: Store;
  colours: Colours;
  theme: string;
  chosen: string | undefined;
  choose: (name: string | undefined) => void;
}

export function Picture({ store, colours, theme, chosen, choose }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter>(null);
  const [tip, setTip] = useState<Tip>();

  useEffect(() => {
    const made = new Painter(canvas.current!, store, colours);
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
  }, [store, colours]);
  useEffect(() => painter.current?.refresh(), [theme]);
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
  const { totals } = store;
  return (
    <div class="picture">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label={`Picture of ${counted(totals.nodes, "node")} with ${counted(totals.pods, "pod")}. Arrow keys choose a node; press T for the same as a table.`}
        onKeyDown={key}
        onClick={(event) => choose(point(event).name)}
        onMouseMove={(event) => {
          const { name, x, y } = point(event);
          setTip(name ? { name, x, y } : undefined);
        }}
        onMouseLeave={() => setTip(undefined)}
      />
      {node && tip && (
        <div class="tip" style={{ left: `${tip.x + 14}px`, top: `${tip.y + 14}px` }} aria-hidden="true">
          {described(node)}
        </div>
      )}
      {!store.nodes.size && (
        <p class="empty">{store.synced ? "No node stands. A pod that waits would bring one." : "Reading nodes and pods …"}</p>
      )}
    </div>
  );
}
