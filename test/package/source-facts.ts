import { parseSync, visitorKeys } from 'oxc-parser';

/** One module specifier of a source file. */
export interface Import {
  /** As written: `../run/sink.ts`, `undici`. */
  readonly specifier: string;
  /** `import type`, `export type` and types like `import('x').Y`: gone at run time, `import { type X }` is not. */
  readonly typeOnly: boolean;
  readonly dynamic: boolean;
  /** `import 'x'` */
  readonly sideEffect: boolean;
}

/** What the package rules need to know of a source file. */
export interface SourceFacts {
  readonly imports: readonly Import[];
  readonly readsProcessEnv: boolean;
  readonly usesConsole: boolean;
  readonly awaitsAtTopLevel: boolean;
  /** Whether every statement is `export … from` or an import for its side effect. */
  readonly onlyReexports: boolean;
  /**
   * Codes of `new RunspanError('CODE', …)`, both of a condition; undefined where the code is no literal. Of a file with a class
   * that extends it all that it names.
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
  let readsProcessEnv = false;
  let usesConsole = false;
  let awaitsAtTopLevel = false;
  walk(program as unknown as Node, [], (node, ancestors) => {
    const found = importOf(node);
    if (found !== undefined) imports.push(found);
    readsProcessEnv ||= isProcessEnv(node);
    usesConsole ||= isGlobal(node, ancestors, 'console') || found?.specifier === 'node:console';
    awaitsAtTopLevel ||= isAwait(node) && !ancestors.some(isFunction);
    if (node.type === 'NewExpression' && isIdentifier(node.callee, 'RunspanError')) {
      errorCodes.push(...literals((node.arguments as unknown[])[0]));
    }
    extendsError ||= node.type === 'ClassDeclaration' && isIdentifier(node.superClass, 'RunspanError');
    if (node.type === 'Literal' && /^RUNSPAN_[A-Z_]+$/.test(String(node.value))) named.push(String(node.value));
  });
  if (extendsError) errorCodes.push(...named);
  return {
    imports,
    readsProcessEnv,
    usesConsole,
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
        // `import {} from 'x'` runs x as well, and binds nothing.
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
  // A specifier that is computed escapes every rule; it is given a name that none of them allows.
  return { specifier: literal(source) ?? '(computed)', ...form };
}

function isProcessEnv(node: Node): boolean {
  if (node.type === 'MemberExpression') return isProcess(node.object) && propertyName(node) === 'env';
  if (node.type === 'VariableDeclarator') return isProcess(node.init) && hasKey(node.id, 'env');
  if (node.type !== 'ImportDeclaration') return false;
  const specifiers = node.specifiers as Node[];
  return (
    /^(node:)?process$/.test(literal(node.source) ?? '') && specifiers.some((one) => isIdentifier(one.imported, 'env'))
  );
}

function isProcess(value: unknown): boolean {
  if (isIdentifier(value, 'process')) return true;
  return isNode(value) && value.type === 'MemberExpression' && propertyName(value) === 'process';
}

function hasKey(pattern: unknown, key: string): boolean {
  return (
    isNode(pattern) &&
    pattern.type === 'ObjectPattern' &&
    (pattern.properties as Node[]).some((one) => isIdentifier(one.key, key))
  );
}

/** Whether the node is the global of this name, and not a property, a key or a type member that is called the same. */
function isGlobal(node: Node, ancestors: readonly Node[], name: string): boolean {
  if (node.type === 'MemberExpression') return isIdentifier(node.object, 'globalThis') && propertyName(node) === name;
  if (!isIdentifier(node, name)) return false;
  const parent = ancestors.at(-1);
  const isOwnName = (parent?.property === node || parent?.key === node) && parent.computed !== true;
  return !isOwnName || parent?.shorthand === true;
}

function propertyName(node: Node): string | undefined {
  return node.computed === true ? literal(node.property) : (node.property as { name?: string }).name;
}

function isAwait(node: Node): boolean {
  if (node.type === 'VariableDeclaration') return node.kind === 'await using';
  return node.type === 'AwaitExpression' || (node.type === 'ForOfStatement' && node.await === true);
}

function isFunction(node: Node): boolean {
  return /^(Function|ArrowFunction)/.test(node.type);
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

/** The literals that a value can be: its own, or those of either branch of a condition. */
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
