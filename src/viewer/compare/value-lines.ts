/** Characters of a line; longer ones go on in the next. */
const LINE_LENGTH = 120;
/** Lines of a value; what comes after them is left out, and said to be. */
export const LINES_MAX = 20_000;

/**
 * A value as lines that can be compared: JSON with one item per line, text with one line per line of it, so that a changed
 * word of a prompt is not a changed prompt.
 */
export function linesOf(value: unknown): string[] {
  const lines: string[] = [];
  append(lines, value, '', '', '');
  return lines;
}

function append(lines: string[], value: unknown, indent: string, before: string, after: string): void {
  if (lines.length >= LINES_MAX) {
    if (lines.length === LINES_MAX) lines.push(`… more than ${LINES_MAX} lines: the rest is left out`);
    return;
  }
  if (typeof value === 'object' && value !== null) appendItems(lines, value, indent, before, after);
  else if (typeof value === 'string' && (value.includes('\n') || value.length > LINE_LENGTH)) {
    lines.push(`${indent}${before}"`);
    for (const line of value.split('\n')) appendText(lines, line, `${indent}  `);
    lines.push(`${indent}"${after}`);
  } else lines.push(`${indent}${before}${JSON.stringify(value) ?? 'undefined'}${after}`);
}

function appendItems(lines: string[], value: object, indent: string, before: string, after: string): void {
  const isList = Array.isArray(value);
  const [open, close] = isList ? '[]' : '{}';
  const items = Object.entries(value);
  if (items.length === 0) {
    lines.push(`${indent}${before}${open}${close}${after}`);
    return;
  }
  lines.push(`${indent}${before}${open}`);
  for (const [position, [key, item]] of items.entries()) {
    if (lines.length > LINES_MAX) return;
    const name = isList ? '' : `${JSON.stringify(key)}: `;
    append(lines, item, `${indent}  `, name, position === items.length - 1 ? '' : ',');
  }
  lines.push(`${indent}${close}${after}`);
}

/** Breaks after a space where there is one not too far back. */
function appendText(lines: string[], line: string, indent: string): void {
  let rest = line;
  while (rest.length > LINE_LENGTH && lines.length < LINES_MAX) {
    const space = rest.lastIndexOf(' ', LINE_LENGTH - 1) + 1;
    const length = space > LINE_LENGTH / 2 ? space : LINE_LENGTH;
    lines.push(indent + rest.slice(0, length));
    rest = rest.slice(length);
  }
  if (lines.length < LINES_MAX) lines.push(indent + rest);
}
