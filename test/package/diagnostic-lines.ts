import { parseSync } from 'oxc-parser';
import { isIdentifier, isNode, literal, type Node, walk } from './source-facts.ts';

export type LineLevel = 'error' | 'warn' | 'debug';

/** A line that the library may print. */
export interface DiagnosticLine {
  readonly level: LineLevel;
  /** With `<name>` wherever something is filled in. */
  readonly text: string;
  readonly path: string;
}

/** A function that makes lines of what it is given: which argument is told, and how. */
interface Teller {
  readonly folder: string;
  readonly name: string;
  readonly argument: number;
  readonly line: (told: string) => string;
}

const TELLERS: readonly Teller[] = [
  { folder: 'export/', name: 'complain', argument: 0, line: (told) => `configuration: ${told}.` },
  { folder: 'export/spool', name: 'warnOf', argument: 1, line: (told) => `spool: <file> ${told}.` },
  {
    folder: 'run/run-attachments',
    name: 'leaveOut',
    argument: 0,
    line: (told) => `Run.attach(name, content, mimeType): ${told}; the attachment was left out.`,
  },
];

/** The lines of a source file: what `diagnostics` prints there, and what the tellers above are given. */
export function diagnosticLines(path: string, source: string): DiagnosticLine[] {
  const { program } = parseSync(path, source, { sourceType: 'module' });
  const tellers = TELLERS.filter(({ folder }) => path.startsWith(folder));
  const lines: DiagnosticLine[] = [];
  const add = (level: LineLevel, texts: readonly string[]): void => {
    for (const text of texts) lines.push({ level, text, path });
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

/** A line in the form in which it is compared: what is filled in has no name, and is one where several stand together. */
export function comparable(text: string): string {
  return text.replaceAll(/<[^<>]*>(?:\s*<[^<>]*>)*/g, '<>').replaceAll(/\s+/g, ' ');
}

function diagnosticsMethod(callee: Node): LineLevel | 'warnOnce' | undefined {
  if (callee.type !== 'MemberExpression' || !isIdentifier(callee.object, 'diagnostics')) return undefined;
  const { name } = callee.property as unknown as { name: string };
  return name === 'warnOnce' || name === 'error' || name === 'warn' || name === 'debug' ? name : undefined;
}

/** `complain` of `complain(…)`, `#tell` of `this.#tell(…)`. */
function calledName(callee: Node): string | undefined {
  if (callee.type !== 'MemberExpression') return callee.name as string | undefined;
  return keyName(callee.property);
}

/** Whether it is the function or method of that name. */
function isCalled({ type, id, key }: Node, name: string): boolean {
  return (type === 'FunctionDeclaration' && isIdentifier(id, name)) || (isNode(key) && keyName(key) === name);
}

function keyName(key: unknown): string | undefined {
  if (!isNode(key)) return undefined;
  return key.type === 'PrivateIdentifier' ? `#${key.name}` : (key.name as string | undefined);
}

/** What an expression may give as text: each branch of a condition for itself, constants by what they are. */
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
  // What may be left out counts as filled in.
  return texts.includes('') ? [`<${nameOf(value)}>`] : texts;
}

/** What a name stands for that is declared by `const` in a block around it. */
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

/** Every way to choose one text of each. */
function joined(choices: readonly (readonly string[])[]): string[] {
  return choices.reduce<string[]>((texts, next) => texts.flatMap((text) => next.map((one) => text + one)), ['']);
}

/** A word for what is filled in: the last name of a member, the first argument of a call. */
function nameOf(value: unknown): string {
  if (!isNode(value)) return '…';
  if (value.type === 'CallExpression') return nameOf((value.arguments as unknown[])[0] ?? value.callee);
  if (value.type === 'MemberExpression') return nameOf(value.computed === true ? value.object : value.property);
  return typeof value.name === 'string' ? value.name : '…';
}
