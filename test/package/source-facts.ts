import { parseSync, visitorKeys } from 'oxc-parser';

export interface Import {
  /** For example `../run/sink.ts` or `undici`. */
  readonly specifier: string;
  /** True for `import type`, `export type` and `import('x').Y`, which do not load the module. */
  readonly typeOnly: boolean;
  readonly dynamic: boolean;
  /** `import 'x'` */
  readonly sideEffect: boolean;
}

/** The properties of a source file that the package rules check. */
export interface SourceFacts {
  readonly imports: readonly Import[];
  readonly awaitsAtTopLevel: boolean;
  /** Whether every statement is `export … from` or an import for its side effect. */
  readonly onlyReexports: boolean;
  /**
   * The codes of `new RunspanError('CODE', …)`, including both branches of a condition, or undefined for a computed
   * code. In a file with a class that extends RunspanError, all codes in the file.
   */
  readonly errorCodes: readonly (string | undefined)[];
}

export interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

export function sourceFacts(path: string, text: string): SourceFacts {
  const { program, errors } = parseSync(path, text, { sourceType: 'module' });
  if (errors.length > 0) throw new SyntaxError(`${path}: ${errors[0]?.message}`);
  const imports: Import[] = [];
  const errorCodes: (string | undefined)[] = [];
  const named: string[] = [];
  let extendsError = false;
  let awaitsAtTopLevel = false;
  walk(program as unknown as Node, [], (node, ancestors) => {
    const found = importOf(node);
    if (found !== undefined) imports.push(found);
    awaitsAtTopLevel ||= isAwait(node) && !ancestors.some(({ type }) => /^(Function|ArrowFunction)/.test(type));
    if (node.type === 'NewExpression' && isIdentifier(node.callee, 'RunspanError')) {
      errorCodes.push(...literals((node.arguments as unknown[])[0]));
    }
    extendsError ||= node.type === 'ClassDeclaration' && isIdentifier(node.superClass, 'RunspanError');
    if (node.type === 'Literal' && /^RUNSPAN_[A-Z_]+$/.test(String(node.value))) named.push(String(node.value));
  });
  if (extendsError) errorCodes.push(...named);
  return {
    imports,
    awaitsAtTopLevel,
    onlyReexports: (program.body as unknown as Node[]).every(isReexport),
    errorCodes,
  };
}

export function walk(
  node: Node,
  ancestors: readonly Node[],
  visit: (node: Node, ancestors: readonly Node[]) => void,
): void {
  visit(node, ancestors);
  const inside = [...ancestors, node];
  for (const key of visitorKeys[node.type] ?? []) {
    for (const child of [node[key]].flat()) if (isNode(child)) walk(child, inside, visit);
  }
}

function importOf(node: Node): Import | undefined {
  const form = { typeOnly: false, dynamic: false, sideEffect: false };
  switch (node.type) {
    case 'ImportDeclaration':
      return withSpecifier(node.source, {
        ...form,
        typeOnly: node.importKind === 'type',
        // `import {} from 'x'` also has only side effects.
        sideEffect: (node.specifiers as unknown[]).length === 0,
      });
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
      return withSpecifier(node.source, { ...form, typeOnly: node.exportKind === 'type' });
    case 'ImportExpression':
      return withSpecifier(node.source, { ...form, dynamic: true });
    case 'TSImportType':
      return withSpecifier(node.source, { ...form, typeOnly: true });
    default:
      return undefined;
  }
}

function withSpecifier(source: unknown, form: Omit<Import, 'specifier'>): Import | undefined {
  if (source === null || source === undefined) return undefined;
  // No rule allows this name.
  return { specifier: literal(source) ?? '(computed)', ...form };
}

function isAwait(node: Node): boolean {
  if (node.type === 'VariableDeclaration') return node.kind === 'await using';
  return node.type === 'AwaitExpression' || (node.type === 'ForOfStatement' && node.await === true);
}

function isReexport(node: Node): boolean {
  if (node.type === 'ExportAllDeclaration') return true;
  if (node.type === 'ExportNamedDeclaration') return node.source !== null;
  return node.type === 'ImportDeclaration' && importOf(node)?.sideEffect === true;
}

export function literal(value: unknown): string | undefined {
  if (!isNode(value)) return undefined;
  if (value.type === 'TSLiteralType') return literal(value.literal);
  return value.type === 'Literal' && typeof value.value === 'string' ? value.value : undefined;
}

/** Returns the literal, or the literals of both branches of a condition. */
function literals(value: unknown): (string | undefined)[] {
  if (!isNode(value) || value.type !== 'ConditionalExpression') return [literal(value)];
  return [...literals(value.consequent), ...literals(value.alternate)];
}

export function isIdentifier(value: unknown, name: string): boolean {
  return isNode(value) && value.type === 'Identifier' && value.name === name;
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}
