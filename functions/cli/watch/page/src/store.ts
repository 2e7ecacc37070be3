import type { DecisionSummary, Least, Message, NodeView, Point, Totals, WaitingView } from "./protocol";

const NOTHING: Totals = {
  nodes: 0,
  owned: 0,
  coming: 0,
  going: 0,
  pods: 0,
  waiting: 0,
  price: 0,
  owned_price: 0,
  unpriced: 0,
};

/** Points that the chart keeps; older ones are thinned, as the server does. */
export const MOST_POINTS = 1440;

/** The cluster as the messages so far describe it. Node objects are replaced, never changed. */
export class Store {
  synced = false;
  recorded = false;
  /** What is added to the time of this computer: a recording has its own time. */
  private offset = 0;
  cluster = "";
  nodes = new Map<string, NodeView>();
  waiting: WaitingView[] = [];
  totals: Totals = NOTHING;
  least: Least | null = null;
  notes: string[] = [];
  decisions: DecisionSummary[] = [];
  history: Point[] = [];
  /** Names of nodes to be drawn anew. */
  dirty = new Set<string>();
  /** Grows when a node comes, goes or has another size: the picture is laid out anew. */
  arrangement = 0;

  apply(message: Message): void {
    if (message.kind === "whole") {
      this.nodes.clear();
      this.arrangement += 1;
      this.history = message.history ?? [];
      this.synced = message.synced ?? true;
    } else {
      this.synced = true;
    }
    this.recorded = message.recorded ?? false;
    if (message.now !== undefined) this.offset = message.now - Date.now();
    for (const node of message.nodes ?? []) this.put(node);
    for (const name of message.gone ?? []) {
      if (this.nodes.delete(name)) this.arrangement += 1;
    }
    if (message.waiting) this.waiting = message.waiting;
    if (message.totals) this.totals = message.totals;
    if (message.cluster !== undefined) this.cluster = message.cluster;
    if (message.least !== undefined) this.least = message.least;
    if (message.notes) this.notes = message.notes;
    if (message.decisions) this.decisions = message.decisions;
    if (message.point) this.add(message.point);
  }

  /** Now, in milliseconds since 1970, by the clock of what is shown. */
  now(): number {
    return Date.now() + this.offset;
  }

  private put(node: NodeView): void {
    const before = this.nodes.get(node.name);
    this.nodes.set(node.name, node);
    this.dirty.add(node.name);
    if (!before || before.cpu !== node.cpu || before.memory !== node.memory) this.arrangement += 1;
  }

  private add(point: Point): void {
    this.history = [...this.history, point];
    if (this.history.length > MOST_POINTS) {
      const half = MOST_POINTS / 2;
      this.history = this.history.filter((_, index) => index >= half || index % 2 === 0);
    }
  }
}

/** How far above the bound Dovetail's nodes are, in percent; null when there is no bound. */
export function excess(totals: Totals, least: Least | null): number | null {
  if (!least || !least.bound) return null;
  return (100 * (totals.owned_price - least.bound)) / least.bound;
}
