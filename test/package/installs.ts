/**
 * Returns the packages that the `npm install` commands above a line of a page install, with their versions, for example
 * `openai` and `7`. Packages without a version have an empty one.
 */
export function installedAbove(markdown: string, line = Number.POSITIVE_INFINITY): ReadonlyMap<string, string> {
  const above = markdown.split('\n').slice(0, line).join('\n');
  const commands = [...above.matchAll(/\bnpm install((?: [^\s`]+)+)/g)].flatMap(([, words = '']) => words.split(' '));
  const packages = commands.flatMap((word) => {
    const [, name, version = ''] = /^(@?[a-z][^@]*)(?:@(.+))?$/.exec(word) ?? [];
    return name === undefined ? [] : [[name, version] as const];
  });
  return new Map(packages);
}

/** Returns the packages other than runspan that a program imports, without those of which it imports only types. */
export function importedBy(code: string): string[] {
  const specifiers = [...code.matchAll(/^import (?!type\b)(?:[^']*? from )?'([^'.][^':]*)'/gm)].map(
    ([, name = '']) => name,
  );
  const names = specifiers.map((specifier) => /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? '');
  return [...new Set(names)].filter((name) => name !== 'runspan');
}
