import { posix } from 'node:path';
import { parseSync } from 'oxc-parser';

/**
 * Returns the texts of declaration files, without the declarations that no entry needs. A declaration is needed if an
 * entry exports it, or if a needed declaration mentions its name.
 *
 * @param {string[]} entries paths
 * @param {(path: string) => string} read returns the text of a file
 * @returns {Map<string, string>} by path
 */
export function neededDeclarations(entries, read) {
  const files = new Map();
  const fileOf = (path) => {
    if (!files.has(path)) files.set(path, parsed(path, read(path)));
    return files.get(path);
  };
  const need = (path, name) => {
    const { statements, needed } = fileOf(path);
    if (needed.has(name)) return;
    needed.add(name);
    for (const { source, exportsAll, names, mentions } of statements) {
      // The file that an `export *` names declares the name, or not.
      if (exportsAll) need(source, name);
      if (!names.has(name)) continue;
      if (source === undefined) for (const one of mentions) need(path, one);
      else if (names.get(name) === undefined) needAll(source);
      else need(source, names.get(name));
    }
  };
  const needAll = (path) => {
    for (const { source, exportsAll, isExport, names } of fileOf(path).statements) {
      if (exportsAll) needAll(source);
      if (isExport) for (const name of names.keys()) need(path, name);
    }
  };
  entries.forEach(needAll);
  return new Map([...files].map(([path, file]) => [path, textOf(file)]).filter(([, text]) => text !== undefined));
}

/**
 * Returns the statements of a file. `names` maps the names that a statement declares to their names in `source`, or to
 * `undefined` for all names of it. `mentions` contains all names in a declaration.
 */
function parsed(path, text) {
  let end = 0;
  const statements = parseSync(`${path}.ts`, text).program.body.map((node) => {
    const { type, source, specifiers, declaration } = node;
    const own = source?.value.startsWith('.')
      ? posix.join(posix.dirname(path), source.value.slice(0, -'.ts'.length))
      : undefined;
    const declared = declaration ?? node;
    const names = new Map(
      specifiers?.length > 0
        ? specifiers.map(({ local, imported, exported }) =>
            type === 'ImportDeclaration' ? [local.name, imported?.name] : [exported.name, local.name],
          )
        : (declared.declarations ?? [declared]).flatMap(({ id }) =>
            id?.name === undefined ? [] : [[id.name, id.name]],
          ),
    );
    const statement = {
      node,
      names,
      // Comments before a statement belong to it.
      text: text.slice(end, node.end),
      source: own,
      isExport: type.startsWith('Export'),
      exportsAll: type === 'ExportAllDeclaration' && own !== undefined,
      mentions: specifiers?.length > 0 ? [...names.values()] : namesIn(declared),
    };
    end = node.end;
    return statement;
  });
  return { statements, needed: new Set() };
}

/** Returns the names in a declaration that may stand for others. */
function namesIn(node) {
  const found = new Set();
  const visit = (value, key) => {
    if (Array.isArray(value)) for (const one of value) visit(one, key);
    if (typeof value?.type !== 'string') return;
    if (value.type === 'Identifier' && key !== 'params') found.add(value.name);
    for (const [inner, part] of Object.entries(value)) if (inner !== 'key' || value.computed) visit(part, inner);
  };
  visit(node);
  return found;
}

/** Returns the needed statements of a file, or undefined if there are none. */
function textOf({ statements, needed }) {
  const isNeeded = (name) => needed.has(name);
  if (!statements.some(({ names }) => [...names.keys()].some(isNeeded))) return undefined;
  const kept = statements.map(({ node, names, text }) => {
    if (names.size === 0) return text;
    const list = [...names.keys()];
    if (!list.some(isNeeded)) return '';
    const { specifiers = [] } = node;
    if (list.every(isNeeded) || specifiers.length === 0) return text;
    const part = (start, end) => text.slice(text.length + start - node.end, text.length + end - node.end);
    const texts = specifiers.filter((_, index) => isNeeded(list[index])).map(({ start, end }) => part(start, end));
    const before = text.slice(0, text.length + specifiers[0].start - node.end);
    return before + texts.join(', ') + part(specifiers.at(-1).end, node.end);
  });
  return `${kept.join('').trim()}\n`;
}
