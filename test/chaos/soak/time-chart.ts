/** One line of a panel. */
export interface TimeLine {
  readonly name: string;
  readonly points: readonly (readonly [minute: number, value: number])[];
}

export interface TimePanel {
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly TimeLine[];
}

const WIDTH = 880;
const LEFT = 64;
const RIGHT = 110;
const PANEL = 190;
const TOP = 46;
const COLOURS = ['#0969da', '#1a7f37', '#9a6700', '#cf222e', '#8250df', '#59636e', '#bf3989', '#0550ae'];

/**
 * Panels one below the other, with minutes on the x axis and a y axis that begins at 0. Small ticks below the panels
 * are marks.
 */
export function timeChart(title: string, panels: readonly TimePanel[], marks: readonly number[]): string {
  const height = TOP + panels.length * PANEL + 30;
  const minutes = Math.max(
    1,
    ...panels.flatMap(({ lines }) => lines.flatMap(({ points }) => points.map(([at]) => at))),
  );
  const x = (minute: number) => (LEFT + (minute / minutes) * (WIDTH - LEFT - RIGHT)).toFixed(1);
  const bottom = TOP + panels.length * PANEL;
  const ticks = marks.map(
    (minute) => `<line class="mark" x1="${x(minute)}" x2="${x(minute)}" y1="${bottom - 14}" y2="${bottom - 8}"/>`,
  );
  const step = stepFor(minutes);
  const labels = Array.from({ length: Math.floor(minutes / step) + 1 }, (_, i) => i * step).map(
    (minute) => `<text class="x unit" x="${x(minute)}" y="${bottom + 8}">${figure(minute)} min</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}">
<style>
  text { font: 12px -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; }
  .panel { font-weight: 600; }
  .unit { fill: #59636e; }
  .y { text-anchor: end; }
  .x { text-anchor: middle; }
  .paper { fill: #ffffff; stroke: #d1d9e0; }
  .grid { stroke: #d1d9e0; }
  .mark { stroke: #cf222e; }
  path { fill: none; stroke-width: 1.5; }
</style>
<rect class="paper" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
<text class="title" x="20" y="28">${title}</text>
${panels.map((panel, i) => drawn(panel, TOP + i * PANEL, x)).join('\n')}
${ticks.join('')}
${labels.join('')}
</svg>
`;
}

function drawn({ title, unit, lines }: TimePanel, top: number, x: (minute: number) => string): string {
  const most = Math.max(1, ...lines.flatMap(({ points }) => points.map(([, value]) => value)));
  const step = stepFor(most);
  const highest = Math.ceil(most / step) * step;
  const y = (value: number) => (top + PANEL - 36 - (value / highest) * (PANEL - 70)).toFixed(1);
  const parts = [
    `<text class="panel" x="20" y="${top + 12}">${title}</text>`,
    `<text class="unit" x="${LEFT + 160}" y="${top + 12}">${unit}</text>`,
  ];
  for (let value = 0; value <= highest * 1.001; value += step)
    parts.push(
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value)}" y2="${y(value)}"/>`,
      `<text class="y unit" x="${LEFT - 6}" y="${Number(y(value)) + 4}">${figure(value)}</text>`,
    );
  lines.forEach(({ name, points }, i) => {
    const colour = COLOURS[i % COLOURS.length];
    const path = points.map(([at, value], j) => `${j === 0 ? 'M' : 'L'}${x(at)} ${y(value)}`).join(' ');
    parts.push(`<path stroke="${colour}" d="${path}"/>`);
    parts.push(`<text x="${WIDTH - RIGHT + 10}" y="${top + 30 + i * 15}" style="fill: ${colour}">${name}</text>`);
  });
  return parts.join('\n');
}

/** 1, 2 or 5 times a power of ten, so that there are at most six steps. */
function stepFor(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most / 5));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => most / step <= 6)!;
}

function figure(value: number): string {
  return Number(value.toPrecision(4)).toLocaleString('en-US');
}
