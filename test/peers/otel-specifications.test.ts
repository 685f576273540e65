import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { vocabularies } from '#src/otel/mapping/row-index.ts';
import { groupsOf } from '../package/attribute-matrix.ts';
import { notes } from '../package/attribute-notes.ts';

const require = createRequire(new URL('./otel/package.json', import.meta.url));

/** The names in a package of constants, without those that only begin others. */
function namesIn(constants: Readonly<Record<string, unknown>>): string[] {
  const names = Object.values(constants).filter((value): value is string => typeof value === 'string');
  return [...new Set(names)].filter((name) => !names.some((other) => other.startsWith(`${name}.`))).sort();
}

/** Whether one of the tables reads an attribute, or it is told why none does. */
function isTold(attribute: string): boolean {
  const told = vocabularies.flatMap((vocabulary) => [
    ...groupsOf(vocabulary).flatMap(([, rows]) =>
      rows.map(([name, , , manner]) => (manner === 'below' ? `${name}.*` : name)),
    ),
    ...(vocabulary.ignored ?? []),
    ...(notes[vocabulary.name]?.kinds ?? []).map((sample) => vocabulary.kindOf(sample).nameFrom),
    ...Object.values(notes[vocabulary.name]?.omitted ?? {}).flat(),
  ]);
  return told.some(
    (name) => name === attribute || (name?.endsWith('*') && `${attribute}.`.startsWith(name.slice(0, -1))),
  );
}

describe('the page on attributes tells of every one', () => {
  it('that OpenInference has a constant for', () => {
    const { SemanticConventions } = require('@arizeai/openinference-semantic-conventions');
    // What stands within the lists.
    const inner =
      /^(?:message|message_content|tool_call|document|annotation|evaluation|embedding)\.(?!model_name|embeddings)/;
    const names = namesIn(SemanticConventions).filter((name) => !inner.test(name));
    expect(names.length).toBeGreaterThan(70);
    expect(names.filter((name) => !isTold(name))).toEqual([]);
  });

  it.each(['gen_ai', 'http', 'url', 'db', 'mcp', 'jsonrpc', 'messaging', 'rpc', 'faas'])(
    'that OpenTelemetry has a constant for in %s',
    (namespace) => {
      const constants = require('@opentelemetry/semantic-conventions/incubating');
      const attributes = Object.entries(constants).filter(([key]) => key.startsWith('ATTR_'));
      const names = namesIn(Object.fromEntries(attributes)).filter((name) => name.startsWith(`${namespace}.`));
      expect(names).not.toEqual([]);
      expect(names.filter((name) => !isTold(name))).toEqual([]);
    },
  );
});
