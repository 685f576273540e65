import { parseSync } from 'oxc-parser';
import { LEVELS, type LogLevel } from '#src/base/diagnostics.ts';
import { isIdentifier, isNode, literal, type Node, walk } from './source-facts.ts';

export type LineLevel = Exclude<LogLevel, 'silent'>;

export interface DiagnosticLine {
  readonly level: LineLevel;
  /** The text with placeholders such as `<name>`. */
  readonly text: string;
  readonly path: string;
}

/** A function that logs one of its arguments. */
interface Teller {
  readonly folder: string;
  readonly name: string;
  readonly argument: number;
  readonly line: (told: string) => string;
}

const TELLERS: readonly Teller[] = [
  { folder: 'config/checker', name: 'report', argument: 0, line: (told) => `<place>: ${told}.` },
  { folder: 'run/run-options', name: 'report', argument: 0, line: (told) => `<place>: ${told}.` },
  { folder: 'http/connections', name: 'complain', argument: 0, line: (told) => `configuration: ${told}.` },
  { folder: 'config/', name: 'complain', argument: 0, line: (told) => `configuration: ${told}.` },
  { folder: 'delivery/spool', name: 'warnOf', argument: 1, line: (told) => `spool: <file> ${told}.` },
  {
    folder: 'run/run-attachments',
    name: 'leaveOut',
    argument: 0,
    line: (told) => `Run.attach(name, content, mimeType): ${told}; the attachment was ignored.`,
  },
];

/** Returns the lines that a source file logs with `diagnostics` or with the functions above. */
export function diagnosticLines(path: string, source: string): DiagnosticLine[] {
  const { program } = parseSync(path, source, { sourceType: 'module' });
  const tellers = TELLERS.filter(({ folder }) => path.startsWith(folder));
  const lines: DiagnosticLine[] = [];
  const add = (level: LineLevel, texts: readonly string[]): void => {
    // A function that passes a line on prints no line of its own.
    for (const text of texts) if (!text.endsWith(': <line>.')) lines.push({ level, text, path });
  };
  walk(program as unknown as Node, [], (node, ancestors) => {
    if (node.type !== 'CallExpression') return;
    const { callee, arguments: given } = node as unknown as { callee: Node; arguments: unknown[] };
    const teller = tellers.find(({ name }) => name === calledName(callee));
    if (teller !== undefined) add('warn', textsOf(given[teller.argument], ancestors).map(teller.line));
    const method = diagnosticsMethod(callee);
    if (method === undefined || tellers.some(({ name }) => ancestors.some((one) => isCalled(one, name)))) return;
    add(method === 'warnOnce' ? 'warn' : method, textsOf(given[method === 'warnOnce' ? 1 : 0], ancestors));
  });
  return lines;
}

/** Replaces each placeholder, and each sequence of placeholders, by `<>`. */
export function comparable(text: string): string {
  return text.replaceAll(/<[^<>]*>(?:\s*<[^<>]*>)*/g, '<>').replaceAll(/\s+/g, ' ');
}

function diagnosticsMethod(callee: Node): LineLevel | 'warnOnce' | undefined {
  if (callee.type !== 'MemberExpression' || !isIdentifier(callee.object, 'diagnostics')) return undefined;
  const { name } = callee.property as unknown as { name: string };
  return [...LEVELS, 'warnOnce'].includes(name) ? (name as LineLevel | 'warnOnce') : undefined;
}

function calledName(callee: Node): string | undefined {
  if (callee.type !== 'MemberExpression') return callee.name as string | undefined;
  return keyName(callee.property);
}

/** Whether the node is the function or method with this name. */
function isCalled({ type, id, key }: Node, name: string): boolean {
  return (type === 'FunctionDeclaration' && isIdentifier(id, name)) || (isNode(key) && keyName(key) === name);
}

function keyName(key: unknown): string | undefined {
  if (!isNode(key)) return undefined;
  return key.type === 'PrivateIdentifier' ? `#${key.name}` : (key.name as string | undefined);
}

/** Returns the possible texts of an expression: one for each branch of a condition, with the values of constants. */
function textsOf(value: unknown, ancestors: readonly Node[]): string[] {
  if (!isNode(value)) return ['<…>'];
  if (value.type === 'ConditionalExpression') {
    return [value.consequent, value.alternate].flatMap((branch) => textsOf(branch, ancestors));
  }
  if (value.type === 'LogicalExpression' && value.operator === '&&') return textsOf(value.right, ancestors);
  if (value.type === 'BinaryExpression' && value.operator === '+') {
    return joined([textsOf(value.left, ancestors), textsOf(value.right, ancestors)]);
  }
  if (value.type === 'TemplateLiteral') {
    const [head = '', ...others] = (value.quasis as { value: { cooked: string } }[]).map((part) => part.value.cooked);
    const holes = (value.expressions as Node[]).map((hole) =>
      hole.type === 'Identifier' ? textsOf(hole, ancestors) : [`<${nameOf(hole)}>`],
    );
    return joined([[head], ...others.flatMap((part, at) => [holes[at] ?? [], [part]])]);
  }
  const known = constant(value, ancestors);
  const text = literal(value) ?? literal(known);
  if (text !== undefined) return [text];
  const isText = isNode(known) && /^(Template|Conditional)/.test(known.type);
  const texts = isText ? textsOf(known, ancestors) : [''];
  // A text that may be empty becomes a placeholder.
  return texts.includes('') ? [`<${nameOf(value)}>`] : texts;
}

/** Returns the value of a `const` in a surrounding block. */
function constant(value: Node, ancestors: readonly Node[]): unknown {
  if (value.type !== 'Identifier') return undefined;
  for (const { body } of ancestors.toReversed()) {
    if (!Array.isArray(body)) continue;
    for (const { kind, declarations } of body as Node[]) {
      if (kind !== 'const') continue;
      const found = (declarations as Node[]).find(({ id }) => isIdentifier(id, value.name as string));
      if (found !== undefined) return found.init;
    }
  }
  return undefined;
}

/** Returns all combinations of the texts. */
function joined(choices: readonly (readonly string[])[]): string[] {
  return choices.reduce<string[]>((texts, next) => texts.flatMap((text) => next.map((one) => text + one)), ['']);
}

/** Returns a name for a placeholder: the last name of a member, or the first argument of a call. */
function nameOf(value: unknown): string {
  if (!isNode(value)) return '…';
  if (value.type === 'CallExpression') return nameOf((value.arguments as unknown[])[0] ?? value.callee);
  if (value.type === 'MemberExpression') return nameOf(value.computed === true ? value.object : value.property);
  return typeof value.name === 'string' ? value.name : '…';
}
