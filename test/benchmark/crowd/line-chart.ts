/** The points of one line, in the order of x. */
export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** `apart`: points without a line between them. */
  readonly kind: 'first' | 'second' | 'third' | 'apart';
}

export interface LinePanel {
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly Line[];
}

const WIDTH = 880;
const COLUMN = WIDTH / 2;
const HEIGHT = 420;
const LEFT = 56;
const RIGHT = 24;
const TOP = 92;
const BOTTOM = 92;

/** Two panels side by side with logarithmic axes. A line bends where a cost begins to grow with the crowd. */
export function lineChart(title: string, xs: readonly number[], panels: readonly LinePanel[]): string {
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
  .apart { stroke: #cf222e; fill: none; stroke-width: 2; }
  path.first, path.second, path.third { fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .unit { fill: #9198a1; }
    .paper { fill: #0d1117; stroke: #3d444d; }
    .grid { stroke: #3d444d; }
    .first { stroke: #4493f8; fill: #4493f8; }
    .second { stroke: #d29922; fill: #d29922; }
    .third { stroke: #656c76; fill: #656c76; }
    .apart { stroke: #f85149; }
  }
</style>
<rect class="paper" x="0.5" y="0.5" width="${WIDTH - 1}" height="${HEIGHT - 1}" rx="8"/>
<text class="title" x="20" y="28">${title}</text>
${panels.map((panel, i) => drawn(panel, xs, i * COLUMN)).join('\n')}
</svg>
`;
}

function drawn({ title, unit, lines }: LinePanel, xs: readonly number[], left: number): string {
  const ys = lines.flatMap(({ points }) => points.map(([, y]) => y)).filter((y) => y > 0);
  const x = scale(xs[0], xs.at(-1)!, left + LEFT, left + COLUMN - RIGHT);
  const [bottom, top] = [10 ** Math.floor(Math.log10(Math.min(...ys))), 10 ** Math.ceil(Math.log10(Math.max(...ys)))];
  const y = scale(bottom, top, HEIGHT - BOTTOM, TOP);
  const parts = [
    `<text class="panel" x="${left + 20}" y="54">${title}</text>`,
    `<text class="unit" x="${left + 20}" y="72">${unit}</text>`,
  ];
  for (let value = bottom; value <= top * 1.001; value *= 10) {
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
    const [keyX, keyY] = [left + LEFT + (i % 2) * 195, HEIGHT - 48 + Math.floor(i / 2) * 20];
    parts.push(`<circle class="${kind}" cx="${keyX}" cy="${keyY - 4}" r="4"/>`);
    parts.push(`<text x="${keyX + 10}" y="${keyY}">${name}</text>`);
  });
  return parts.join('\n');
}

function scale(from: number, to: number, start: number, end: number): (value: number) => string {
  const span = Math.log10(to) - Math.log10(from);
  return (value) => (start + ((Math.log10(value) - Math.log10(from)) / span) * (end - start)).toFixed(1);
}

function count(value: number): string {
  return Number(value.toPrecision(6)).toLocaleString('en-US', { maximumFractionDigits: 3 });
}
