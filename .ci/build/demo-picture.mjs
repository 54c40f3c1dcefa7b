// Draws what the demo prints, for README.md:
//   node .ci/build/demo-picture.mjs    runs the demo, and writes docs/images/demo.svg
// The picture is text, in a monospaced font of the reader's. Every part of a line has its place, so that columns stay
// columns whatever the widths of ✓ and █ are in that font.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const IMAGE = join(ROOT, 'docs/images/demo.svg');

const COLUMN = 7.8;
const LINE = 18;
const MARGIN = { left: 20, top: 34, bottom: 16 };

const STYLE = `
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #1f2328; }
  .paper { fill: #f6f8fa; stroke: #d1d9e0; }
  .quiet { fill: #59636e; }
  .good { fill: #1a7f37; }
  .bad { fill: #cf222e; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .paper { fill: #151b23; stroke: #3d444d; }
    .quiet { fill: #9198a1; }
    .good { fill: #3fb950; }
    .bad { fill: #f85149; }
  }
`;

/** The part of the demo's output that the picture shows: who takes part, and the results, without the steps. */
export function shownOf(output) {
  const lines = output.split('\n').map((line) => line.replace(/^ {2}/, '').trimEnd());
  const [shop] = lines.filter((line) => / process(es)?, /.test(line));
  const from = lines.findIndex((line) => line.trim().startsWith('with the lock '));
  if (shop === undefined || from < 0) throw new Error(`This is not what the demo prints:\n${output}`);
  const results = lines.slice(from);
  while (results.at(-1) === '') results.pop();
  return ['$ npm run demo', shop.replace(/ \(port \d+\)/, ''), '', ...results];
}

/** @param lines as {@link shownOf} returns them @returns an SVG */
export function draw(lines) {
  const width = Math.ceil(Math.max(...lines.map(({ length }) => length)) * COLUMN) + 2 * MARGIN.left;
  const height = MARGIN.top + lines.length * LINE + MARGIN.bottom - LINE;
  const rows = lines.flatMap((line, row) => (line === '' ? [] : [drawLine(line, MARGIN.top + row * LINE)]));
  const label = 'The output of npm run demo';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">`,
    `<style>${STYLE}</style>`,
    `<rect class="paper" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>`,
    ...rows,
    '</svg>\n',
  ].join('\n');
}

/** Only parts with signs outside of ASCII need a fixed width. */
function drawLine(line, y) {
  const parts = [...line.matchAll(/[!-~]+(?: [!-~]+)*|[^ -~]+/g)].map(({ 0: text, index }) => {
    const x = round(MARGIN.left + index * COLUMN);
    const isAscii = /^[ -~]+$/.test(text);
    const length = isAscii ? '' : ` textLength="${round(text.length * COLUMN)}" lengthAdjust="spacingAndGlyphs"`;
    const kind = kindOf(text, index, line);
    return `<tspan x="${x}"${length}${kind ? ` class="${kind}"` : ''}>${escaped(text)}</tspan>`;
  });
  return `<text y="${y}">${parts.join('')}</text>`;
}

/** How a part of a line is coloured, as in a terminal. */
function kindOf(text, column, line) {
  if (column >= line.search(/[✗←]/) && /[✗←]/.test(line)) return 'bad';
  if (text.startsWith('✓')) return 'good';
  if (/^\$|processes?, |─|^who was/.test(line)) return 'quiet';
  return undefined;
}

function round(value) {
  return Math.round(value * 10) / 10;
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { stdout, stderr, status } = spawnSync('npm', ['run', '--silent', 'demo'], { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm run demo failed:\n${stdout}${stderr}`);
  writeFileSync(IMAGE, draw(shownOf(stdout)));
  console.log(`wrote ${IMAGE}`);
}
