/** Generates the figures in `README.md` from the committed results. */
import { figureOf } from './goals.mjs';
import { shown } from './numbers.mjs';
import { costLabel, costRatio, LEADING, labelOf, markdownTable } from './page.mjs';

const BEGIN = '<!-- Generated from docs/benchmarks/results.json by `npm run bench -- page`. -->';
const END = '<!-- End of the generated figures. -->';
const ROWS = ['traceable', 'processor', 'otlp-json', 'langfuse', 'langsmith'];

/** The drivers that measure the ratios. The limit shows whether a driver truncates payloads. */
export const CHECKED_DRIVERS = ['limit', ...ROWS];
const DIFFERENCE_MAX = 0.15;

/**
 * Compares the ratios to OTLP/JSON that the README states for one Node with newly measured ones. Returns a line for each,
 * which says whether it is within 15 % of the README's. A missing ratio is outside.
 */
export function compareRatios(stated, measured) {
  return ROWS.filter((name) => name !== 'otlp-json').map((name) => {
    const [there, here] = [stated, measured].map((node) => figureOf(node, 'agent', name, 'cpuUsPerRun', 'toOtlp'));
    const isWithin = Math.abs(here / there - 1) <= DIFFERENCE_MAX;
    const verdict = `${isWithin ? 'within' : 'outside'} ${100 * DIFFERENCE_MAX} %`;
    return `${verdict} of the README: ${labelOf(name)} × OTLP/JSON: README ${shown(there)}, here ${shown(here)}`;
  });
}

/** Returns the text with new figures between the two comments. */
export function withFigures(text, results) {
  const [start, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (start < 0 || end < start) throw new Error(`Expected ${BEGIN} and ${END}`);
  return `${text.slice(0, start)}${BEGIN}\n\n${figuresOf(results)}\n\n${text.slice(end)}`;
}

function figuresOf(results) {
  const nodes = LEADING.map((major) => ({ major, cells: results[major]?.cells ?? [] }));
  const head = ['CPU time per run, × OTLP/JSON', ...nodes.map(({ major }) => `Node ${major}`)];
  const rows = ROWS.map((name) => [costLabel(name), ...nodes.map((node) => costRatio(node, name))]);
  return `${markdownTable(head, rows)}\n\n${throughputLine(nodes)}`;
}

function throughputLine(nodes) {
  const rates = nodes.map((node) => {
    const rate = figureOf(node, 'ingest', 'traceable', 'runsPerSecond');
    return `${rate === undefined ? 'not measured' : `${shown(rate)} runs per second`} on Node ${node.major}`;
  });
  const source = '[`npm run bench -- ingest`](docs/benchmarks-tables.md#throughput)';
  return `- **Throughput** from \`traceable\` into the receiver: ${rates.join(', ')} (${source}).`;
}
