import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { dollars } from "./format";
import type { Point } from "./protocol";

function time(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** Dollars per hour and their bound over time. */
export function Chart({ points, theme }: { points: Point[]; theme: string }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);

  useEffect(() => {
    const element = place.current!;
    const style = getComputedStyle(element);
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const axis = {
      stroke: colour("muted"),
      grid: { stroke: colour("line"), width: 1 },
      ticks: { show: false },
      font: "10px system-ui, sans-serif",
      size: 22,
    };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: 120,
        padding: [8, 4, 0, 0],
        cursor: { show: false },
        legend: { show: false },
        scales: { y: { range: (_, __, high) => [0, Math.max(high * 1.08, 0.01)] } },
        axes: [
          { ...axis, space: 70, values: (_, moments) => moments.map(time) },
          { ...axis, size: 46, values: (_, values) => values.map((value) => `$${value}`), space: 26 },
        ],
        series: [
          {},
          { points: { show: false }, stroke: colour("price"), width: 2, fill: colour("price-fill"), paths: uPlot.paths.stepped!({ align: 1 }) },
          { points: { show: false }, stroke: colour("bound"), width: 2, dash: [5, 4], paths: uPlot.paths.stepped!({ align: 1 }) },
        ],
      },
      [[], [], []],
      element,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: 120 }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [theme]);

  useEffect(() => {
    plot.current?.setData([
      points.map((point) => point[0]),
      points.map((point) => point[2] / 1_000_000),
      points.map((point) => (point[3] === null ? null : point[3] / 1_000_000)),
    ]);
  }, [points, theme]);

  const last = points[points.length - 1];
  const said = last
    ? `Dollars per hour of Dovetail's nodes over time: now ${dollars(last[2])}, at least ${last[3] === null ? "unknown" : dollars(last[3])}.`
    : "Dollars per hour over time: nothing yet.";
  return <div class="chart" ref={place} role="img" aria-label={said} />;
}
