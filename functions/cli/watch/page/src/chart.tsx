import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { dollars } from "./format";
import type { Point } from "./protocol";

const HOUR = 3600;
const HEIGHT = 130;

function time(seconds: number, span: number): string {
  const parts = { hour: "2-digit", minute: "2-digit" } as const;
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", span > HOUR ? parts : { ...parts, second: "2-digit" });
}

/** A moment, with its day if that is not the day of another one. */
function moment(seconds: number, other: number): string {
  const [date, against] = [new Date(seconds * 1000), new Date(other * 1000)];
  const hour = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (date.toDateString() === against.toDateString()) return hour;
  return `${date.toLocaleDateString("en-GB", { day: "numeric", month: "long" })}, ${hour}`;
}

/** Where what the chart shows of the last day comes from, and where it begins. */
export function originOf(points: Point[], opened: number): string {
  const first = points[0]?.[0];
  if (first === undefined || !opened) return "";
  const until = moment(opened, opened);
  if (first >= opened - 1) return `Begins at ${until}, when this was opened: no decision of the day before is recorded.`;
  return `Begins at ${moment(first, opened)}, with the first recorded decision of the last 24 hours; until ${until} it is what decisions and launches recorded, and a removal shows with the next of them.`;
}

/** Dollars per hour, their bound, and the number of nodes over time. */
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
        height: HEIGHT,
        padding: [8, 4, 0, 0],
        cursor: { show: false },
        legend: { show: false },
        scales: {
          y: { range: (_, __, high) => [0, Math.max(high * 1.08, 0.01)] },
          nodes: { range: (_, __, high) => [0, Math.max(high * 1.08, 1)] },
        },
        axes: [
          { ...axis, space: 70, values: (plot, moments) => moments.map((at) => time(at, plot.scales["x"]!.max! - plot.scales["x"]!.min!)) },
          { ...axis, size: 46, values: (_, values) => values.map((value) => `$${value}`), space: 26 },
          { ...axis, scale: "nodes", side: 1, size: 34, grid: { show: false }, values: (_, values) => values.map((value) => (Number.isInteger(value) ? `${value}` : "")), space: 26 },
        ],
        series: [
          {},
          { points: { show: false }, stroke: colour("price"), width: 2, fill: colour("price-fill"), paths: uPlot.paths.stepped!({ align: 1 }) },
          { points: { show: false }, stroke: colour("bound"), width: 2, dash: [5, 4], paths: uPlot.paths.stepped!({ align: 1 }) },
          { scale: "nodes", points: { show: false }, stroke: colour("muted"), width: 1, paths: uPlot.paths.stepped!({ align: 1 }) },
        ],
      },
      [[], [], [], []],
      element,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
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
      points.map((point) => point[4]),
    ]);
  }, [points, theme]);

  const last = points[points.length - 1];
  const said = last
    ? `Over time, dollars per hour of Dovetail's nodes: now ${dollars(last[2])}, lower bound ${last[3] === null ? "unknown" : dollars(last[3])}; and all nodes: now ${last[4]}.`
    : "Dollars per hour over time: nothing yet.";
  return <div class="chart" ref={place} role="img" aria-label={said} />;
}
