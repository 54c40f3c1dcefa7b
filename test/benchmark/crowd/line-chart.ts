/** The points of one line, in the order of x. */
export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** `apart`: points without a line between them. */
  readonly kind: 'first' | 'second' | 'third' | 'fourth' | 'apart';
}

export interface LinePanel {
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly Line[];
}

const WIDTH = 880;
const COLUMN = WIDTH / 2;
const HEIGHT = 440;
const LEFT = 56;
const RIGHT = 24;
const TOP = 92;
const BOTTOM = 112;

/** Two panels side by side with logarithmic axes. A line bends where a cost begins to grow with the crowd. */
export function lineChart(title: string, xs: readonly number[], panels: readonly LinePanel[]): string {
  const ys = panels
    .flatMap(({ lines }) => lines.flatMap(({ points }) => points.map(([, y]) => y)))
    .filter((y) => y > 0);
  const ticks = ticksOf(Math.min(...ys), Math.max(...ys));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}">
<style>
  text { font: 12px -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; }
  .panel { font-weight: 600; }
  .unit { fill: #59636e; }
  .y { text-anchor: end; }
  .x { text-anchor: middle; }
  .paper { fill: #ffffff; stroke: #d1d9e0; }
  .grid { stroke: #d1d9e0; }
  path { fill: none; stroke-width: 2; }
  .first { stroke: #0969da; fill: #0969da; }
  .second { stroke: #9a6700; fill: #9a6700; }
  .third { stroke: #8c959f; fill: #8c959f; }
  .fourth { stroke: #8250df; fill: #8250df; }
  .apart { stroke: #cf222e; fill: none; stroke-width: 2; }
  path.first, path.second, path.third, path.fourth { fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .unit { fill: #9198a1; }
    .paper { fill: #0d1117; stroke: #3d444d; }
    .grid { stroke: #3d444d; }
    .first { stroke: #4493f8; fill: #4493f8; }
    .second { stroke: #d29922; fill: #d29922; }
    .third { stroke: #656c76; fill: #656c76; }
    .fourth { stroke: #ab7df8; fill: #ab7df8; }
    .apart { stroke: #f85149; }
  }
</style>
<rect class="paper" x="0.5" y="0.5" width="${WIDTH - 1}" height="${HEIGHT - 1}" rx="8"/>
<text class="title" x="20" y="28">${title}</text>
${panels.map((panel, i) => drawn(panel, xs, ticks, i * COLUMN)).join('\n')}
</svg>
`;
}

function drawn({ title, unit, lines }: LinePanel, xs: readonly number[], ticks: readonly number[], left: number) {
  const x = scale(xs[0], xs.at(-1)!, left + LEFT, left + COLUMN - RIGHT);
  const y = scale(ticks[0], ticks.at(-1)!, HEIGHT - BOTTOM, TOP);
  const parts = [
    `<text class="panel" x="${left + 20}" y="54">${title}</text>`,
    `<text class="unit" x="${left + 20}" y="72">${unit}</text>`,
  ];
  for (const value of ticks) {
    parts.push(
      `<line class="grid" x1="${left + LEFT}" x2="${left + COLUMN - RIGHT}" y1="${y(value)}" y2="${y(value)}"/>`,
    );
    parts.push(`<text class="y unit" x="${left + LEFT - 6}" y="${Number(y(value)) + 4}">${count(value)}</text>`);
  }
  for (const value of xs)
    parts.push(`<text class="x unit" x="${x(value)}" y="${HEIGHT - BOTTOM + 18}">${count(value)}</text>`);
  lines.forEach(({ name, points, kind }, i) => {
    const seen = points.filter(([, value]) => value > 0);
    const path = seen.map(([at, value], j) => `${j === 0 ? 'M' : 'L'}${x(at)} ${y(value)}`).join(' ');
    if (kind !== 'apart') parts.push(`<path class="${kind}" d="${path}"/>`);
    const radius = kind === 'apart' ? 6 : 3;
    for (const [at, value] of seen)
      parts.push(`<circle class="${kind}" cx="${x(at)}" cy="${y(value)}" r="${radius}"/>`);
    const [keyX, keyY] = [left + LEFT + (i % 2) * 195, HEIGHT - 64 + Math.floor(i / 2) * 20];
    parts.push(`<circle class="${kind}" cx="${keyX}" cy="${keyY - 4}" r="4"/>`);
    parts.push(`<text x="${keyX + 10}" y="${keyY}">${name}</text>`);
  });
  return parts.join('\n');
}

/** Round numbers, from the last one up to `least` to the first one from `most` on. */
function ticksOf(least: number, most: number): readonly number[] {
  const decades = Array.from({ length: 12 }, (_, i) => 10 ** (i - 4));
  const all = decades.flatMap((decade) => [1, 1.5, 2, 3, 5, 7].map((step) => step * decade));
  const [above, end] = [(tick: number) => tick > least, (tick: number) => tick >= most].map((is) => all.findIndex(is));
  return all.slice(above - 1, Math.max(above, end) + 1);
}

function scale(from: number, to: number, start: number, end: number): (value: number) => string {
  const span = Math.log10(to) - Math.log10(from);
  return (value) => (start + ((Math.log10(value) - Math.log10(from)) / span) * (end - start)).toFixed(1);
}

function count(value: number): string {
  return Number(value.toPrecision(6)).toLocaleString('en-US', { maximumFractionDigits: 3 });
}
