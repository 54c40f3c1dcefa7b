import type { Panel } from '../workloads/workload.js';
import { count } from './figures.js';

const WIDTH = 880;
const COLUMN = WIDTH / 2;
const PADDING = 20;
const NAMES = 150;
const FIGURES = 74;
const ROW = 20;
const HEADER = 46;
const BAR = 13;

/**
 * Cards with horizontal bars, two in a row. The scale is linear, because the proportions matter. The chart has its own
 * background, so that it can be read on any page.
 */
export function chart(title: string, panels: readonly Panel[]): string {
  const rows = Math.ceil(panels.length / 2);
  const heights = Array.from({ length: rows }, (_, row) => {
    const entries = panels.slice(2 * row, 2 * row + 2).map(({ values }) => values.length);
    return HEADER + Math.max(...entries) * ROW + PADDING;
  });
  const top = (row: number) => 40 + heights.slice(0, row).reduce((sum, height) => sum + height, 0);
  const body = panels.map((panel, i) => card(panel, (i % 2) * COLUMN, top(i >> 1)));
  const height = top(rows);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">
<style>
  text { font: 12px -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; }
  .unit { fill: #59636e; }
  .name { text-anchor: end; }
  .paper { fill: #ffffff; stroke: #d1d9e0; }
  .ours { fill: #0969da; }
  .floor { fill: #9a6700; }
  .peer { fill: #8c959f; }
  .mine { font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .unit { fill: #9198a1; }
    .paper { fill: #0d1117; stroke: #3d444d; }
    .ours { fill: #4493f8; }
    .floor { fill: #d29922; }
    .peer { fill: #656c76; }
  }
</style>
<rect class="paper" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
<text class="title" x="${PADDING}" y="28">${escaped(title)}</text>
${body.join('\n')}
</svg>
`;
}

function card({ title, unit, values }: Panel, left: number, top: number): string {
  const most = Math.max(...values.map(({ value }) => value));
  const start = left + PADDING + NAMES;
  const room = COLUMN - 2 * PADDING - NAMES - FIGURES;
  const bars = values.map(({ name, value }, row) => {
    const kind = row === 0 ? 'ours' : name === 'floor' ? 'floor' : 'peer';
    const y = top + HEADER + row * ROW;
    const width = Math.max(1, (value / most) * room);
    const mine = row === 0 ? ' mine' : '';
    return [
      `<text class="name${mine}" x="${start - 8}" y="${y + 11}">${escaped(name)}</text>`,
      `<rect class="${kind}" x="${start}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" rx="2"/>`,
      `<text class="figure${mine}" x="${(start + width + 6).toFixed(1)}" y="${y + 11}">${count(value)}</text>`,
    ].join('\n');
  });
  return [
    `<text x="${left + PADDING}" y="${top + 20}" class="mine">${escaped(title)}</text>`,
    `<text x="${left + PADDING}" y="${top + 36}" class="unit">${escaped(unit)}</text>`,
    ...bars,
  ].join('\n');
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
}
