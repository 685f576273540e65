/** Generates the figures in `README.md` from the committed results. */
import { figureOf } from './goals.mjs';
import { shown } from './numbers.mjs';
import { costLabel, costRatio, LEADING, markdownTable } from './page.mjs';

const BEGIN = '<!-- Generated from docs/benchmarks/results.json by `npm run bench -- page`. -->';
const END = '<!-- End of the generated figures. -->';
const ROWS = ['traceable', 'processor', 'otlp-json', 'langfuse', 'langsmith'];

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
