"""How the page looks: dark and light, on paper, without anything fetched."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --page: #fbfbfa; --card: #fff; --ink: #1c2126; --soft: #5b6670;
  --line: #dfe3e6; --now: #8a95a0; --good: #1f7a4d; --bad: #b3402b; --bound: #c07a12;
  --cpu: #3b74b9; --memory: #8d5fb3; --free: #e9ecee; --tint: #eaf4ee; }
@media (prefers-color-scheme: dark) { :root { --page: #14181b; --card: #1c2226; --ink: #e8ecee;
  --soft: #9daab3; --line: #313a40; --now: #71808b; --good: #57c08d; --bad: #ec8a73;
  --bound: #e5ab4b; --cpu: #6aa3e6; --memory: #ba90de; --free: #2c343a; --tint: #1d3127; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 40px 0 4px; }
p { margin: 4px 0 12px; max-width: 76ch; }
.soft, caption, figcaption { color: var(--soft); }
.verdict { display: grid; grid-template-columns: repeat(auto-fit, minmax(210px, 1fr)); gap: 12px;
  margin: 20px 0 8px; }
.fact { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 14px 16px; }
.fact b { display: block; font-size: 26px; line-height: 1.2; font-variant-numeric: tabular-nums; }
.fact.good { background: var(--tint); }
.fact.good b, td.good { color: var(--good); }
td.bad { color: var(--bad); }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; margin: 8px 0 16px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: 10px 14px 0; }
th, td { padding: 7px 14px; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
thead th { font-weight: 600; color: var(--soft); font-size: 13px; white-space: nowrap; }
tbody th { font-weight: 500; }
tbody th small, td small { display: block; color: var(--soft); font-weight: 400;
  max-width: 52ch; }
td small { max-width: 80ch; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.f { white-space: nowrap; }
tfoot th, tfoot td { font-weight: 600; border-bottom: 0; }
tbody:last-child tr:last-child > * { border-bottom: 0; }
.bar { display: block; position: relative; height: 14px; min-width: 160px; background: var(--free);
  border-radius: 3px; }
.bar i { position: absolute; inset: 0 auto 0 0; border-radius: 3px; background: var(--good); }
.bar i.now { background: var(--now); }
.bar u { position: absolute; top: -3px; bottom: -3px; width: 3px; background: var(--bound); }
.fill { display: inline-block; width: 64px; height: 8px; margin-right: 6px; border-radius: 2px;
  background: var(--free); overflow: hidden; vertical-align: 1px; }
.fill i { display: block; height: 100%; background: var(--cpu); }
.fill.memory i { background: var(--memory); }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin: 0 4px 0 10px;
  vertical-align: -1px; }
figure { margin: 8px 0 20px; }
.fleet { display: grid; grid-template-columns: repeat(auto-fill, minmax(132px, 1fr)); gap: 8px; }
.node { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: 6px 8px 8px; font-size: 12px; line-height: 1.35; overflow: hidden;
  white-space: nowrap; text-overflow: ellipsis; }
.node b { font-weight: 600; }
.node .fill { display: block; width: 100%; height: 6px; margin: 4px 0 0; }
ul { padding-left: 20px; max-width: 90ch; } li { margin: 3px 0; }
h3 { font-size: 15px; margin: 20px 0 4px; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin: 4px 0;
  padding: 12px 16px; overflow-x: auto;
  font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; }
footer { margin-top: 40px; padding-top: 12px; border-top: 1px solid var(--line);
  color: var(--soft); font-size: 13px; }
tfoot th { white-space: nowrap; }
@media screen and (max-width: 640px) { main { padding: 20px 14px 48px; }
  table, tbody, tfoot, caption { display: block; } thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: 2px 16px; padding: 8px 14px;
    border-bottom: 1px solid var(--line); }
  tbody:last-child tr:last-child, tfoot tr { border-bottom: 0; }
  th, td, tbody th small, td small { padding: 0; border: 0; max-width: none; }
  td.n { text-align: left; } td:empty { display: none; } td:has(.bar) { flex: 1 0 100%; }
  td[data-label]::before { content: attr(data-label) " "; color: var(--soft); font-size: 13px; }
  td.n small { display: inline; } td.n small::before { content: " · "; } }
@media print { :root { color-scheme: light; --page: #fff; --card: #fff; --ink: #000; --soft: #444;
  --line: #bbb; --now: #8a95a0; --good: #1f7a4d; --bad: #b3402b; --bound: #c07a12; --cpu: #3b74b9;
  --memory: #8d5fb3; --free: #e4e7e9; --tint: #fff; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { font-size: 11px; } main { max-width: none; padding: 0; } .scroll { overflow: visible; }
  .fact b { font-size: 19px; } tr, .node, .fact { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  pre { font-size: 9px; white-space: pre-wrap; }
  .bar { min-width: 90px; } th, td { padding: 4px 7px; } }
"""
