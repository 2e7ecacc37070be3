import { aspectOf, type Aspect } from "./arrange";
import type { NodeView, Phase } from "./protocol";

// Twelve that differ from their neighbours also for most colour-blind people, on dark and on light.
const PALETTE = [
  "#4e9fdf", "#f2994a", "#5dbb63", "#e5616b", "#8e7cc3", "#e8c547",
  "#3fb8af", "#f28cb1", "#b08968", "#7aa6c2", "#a3c644", "#c77dbb",
];
export const DAEMONS = "daemons";
const GREY = "#8b95a5";

const PHASE_COLOURS: Record<Phase, string> = {
  initialized: "#5dbb63",
  registered: "#3fb8af",
  launched: "#4e9fdf",
  launching: "#7aa6c2",
  going: "#f2994a",
  "not ready": "#e5616b",
};

/** The colour of a workload's pods on a node. */
export type Fill = (node: NodeView, workload: string) => string;

/** Gives each workload a colour when it is first seen, and never another. */
export class Colours {
  private known = new Map<string, string>();

  of(workload: string): string {
    if (workload === DAEMONS) return GREY;
    let colour = this.known.get(workload);
    if (!colour) {
      colour = PALETTE[this.known.size % PALETTE.length]!;
      this.known.set(workload, colour);
    }
    return colour;
  }
}

/** Colours of workloads, and of the values of each aspect of nodes. */
export class Palette {
  readonly workloads = new Colours();
  private values: Record<Aspect, Colours> = { owner: new Colours(), zone: new Colours(), capacity_type: new Colours(), phase: new Colours() };

  of(node: NodeView, aspect: Aspect): string {
    return aspect === "phase" ? PHASE_COLOURS[node.phase] : this.values[aspect].of(aspectOf(node, aspect));
  }

  fill(aspect: Aspect | undefined): Fill {
    return aspect ? (node) => this.of(node, aspect) : (_, workload) => this.workloads.of(workload);
  }
}

/** Workloads of nodes with their pods, the most first. */
export function legend(nodes: Iterable<{ pods: { workload: string; count: number }[] }>): [string, number][] {
  const counts = new Map<string, number>();
  for (const node of nodes) {
    for (const { workload, count } of node.pods) counts.set(workload, (counts.get(workload) ?? 0) + count);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}
