import { diffArrays } from 'diff';
import { exactJson, isFields } from '../../payload/fields.ts';

export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** Length at which lines are wrapped. Without wrapping, one changed word would mark a whole prompt as changed. */
const LINE_LENGTH = 120;
/** Maximum number of lines to compare per value. Lines after the maximum are dropped. */
export const LINES_MAX = 20_000;
/** Maximum number of changed lines. The time grows quadratically, so beyond it, values count as all different. */
const EDITS_MAX = 1_500;

export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  const changes = diffArrays([...before], [...after], { maxEditLength: EDITS_MAX }) ?? [
    { removed: true, added: false, value: before },
    { removed: false, added: true, value: after },
  ];
  return changes.flatMap(({ removed, added, value }) => {
    const kind = removed ? 'removed' : added ? 'added' : 'same';
    return value.map((text) => ({ kind, text }) as const);
  });
}

/** Splits a value into lines. JSON is formatted with one item per line, and text keeps its line breaks. */
export function linesOf(value: unknown): string[] {
  const lines: string[] = [];
  append(lines, value, '', '', '');
  if (lines.length <= LINES_MAX) return lines;
  return [...lines.slice(0, LINES_MAX), `… only the first ${LINES_MAX.toLocaleString('en')} lines are compared`];
}

export function textLines(text: string): string[] {
  const lines: string[] = [];
  for (const line of text.split('\n')) appendText(lines, line, '  ');
  return lines;
}

function append(lines: string[], value: unknown, indent: string, before: string, after: string): void {
  if (lines.length > LINES_MAX) return;
  if (isFields(value) || Array.isArray(value)) appendItems(lines, value, indent, before, after);
  else if (typeof value === 'string' && (value.includes('\n') || value.length > LINE_LENGTH)) {
    lines.push(`${indent}${before}"`);
    for (const line of value.split('\n')) appendText(lines, line, `${indent}  `);
    lines.push(`${indent}"${after}`);
  } else lines.push(`${indent}${before}${exactJson(value) ?? 'undefined'}${after}`);
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

/** Appends a text in wrapped lines. Wraps after a space if the second half of the line contains one. */
function appendText(lines: string[], line: string, indent: string): void {
  let rest = line;
  while (rest.length > LINE_LENGTH && lines.length <= LINES_MAX) {
    const space = rest.lastIndexOf(' ', LINE_LENGTH - 1) + 1;
    const length = space > LINE_LENGTH / 2 ? space : LINE_LENGTH;
    lines.push(indent + rest.slice(0, length));
    rest = rest.slice(length);
  }
  lines.push(indent + rest);
}
