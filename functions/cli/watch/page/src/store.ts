import type { DecisionSummary, Least, Message, NodeView, Point, Recorded, Totals, WaitingView } from "./protocol";

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
  /** Null for a live cluster. */
  recorded: Recorded | null = null;
  /** The time of a recording's last message, when that came, and how fast time passes since. */
  private clock: { now: number; came: number; rate: number } | null = null;
  cluster = "";
  nodes = new Map<string, NodeView>();
  waiting: WaitingView[] = [];
  totals: Totals = NOTHING;
  least: Least | null = null;
  notes: string[] = [];
  decisions: DecisionSummary[] = [];
  history: Point[] = [];
  opened = 0;
  /** Names of nodes to be drawn anew. */
  dirty = new Set<string>();
  /** Grows when a node comes, goes or has another size: the picture is laid out anew. */
  arrangement = 0;

  apply(message: Message): void {
    if (message.kind === "whole") {
      this.nodes.clear();
      this.arrangement += 1;
      this.history = [];
      this.synced = message.synced ?? true;
    } else {
      this.synced = true;
    }
    this.recorded = message.recorded ?? null;
    this.clock = message.now === undefined ? null : { now: message.now, came: Date.now(), rate: this.recorded?.speed ?? 1 };
    if (message.history) this.history = message.history;
    if (message.opened !== undefined) this.opened = message.opened;
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
    return this.clock ? this.clock.now + this.passed() : Date.now();
  }

  /** How far a recording is played, in seconds. */
  position(): number {
    return this.recorded ? Math.min(this.recorded.at + this.passed() / 1000, this.recorded.length) : 0;
  }

  /** Stops the time of a recording, until its next message. */
  freeze(): void {
    if (!this.recorded) return;
    this.recorded = { ...this.recorded, at: this.position() };
    this.clock = { now: this.now(), came: Date.now(), rate: 0 };
  }

  /** Milliseconds of a recording since its last message. */
  private passed(): number {
    return this.clock ? (Date.now() - this.clock.came) * this.clock.rate : 0;
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
