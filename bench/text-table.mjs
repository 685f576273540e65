/** Formats rows of text below titles. Aligns the first column to the left, and all others to the right. */
export function textTable(titles, rows) {
  const lines = [titles, ...rows];
  const widths = titles.map((_, at) => Math.max(...lines.map((line) => line[at].length)));
  const pad = (text, at) => (at === 0 ? text.padEnd(widths[at]) : text.padStart(widths[at]));
  return lines.map((line) => line.map(pad).join('  ')).join('\n');
}
