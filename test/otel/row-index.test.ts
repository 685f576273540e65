import { describe, expect, test } from 'vitest';
import { vocabularies } from '../../src/otel/mapping.ts';
import { RowIndex } from '../../src/otel/row-index.ts';

const index = new RowIndex(vocabularies);

describe('an attribute that is a part of an object', () => {
  const names = vocabularies.flatMap(({ inputs = [], parameters = [], metadata = [] }) =>
    [...inputs, ...parameters, ...metadata].flatMap(([name, , , manner]) => (manner === 'below' ? [name] : [])),
  );

  test.each(names)('is read under %s, however long its own name is', (name) => {
    expect(index.factsOf(`${name}.a`).group).toBe(name);
    expect(index.factsOf(`${name}.a${'.b'.repeat(1_000)}`).group).toBe(name);
    expect(index.factsOf(`${name}a.b`).group).not.toBe(name);
  });

  test('is read under the longest name that a row has', () => {
    expect(index.factsOf('ai.settings.context.a').group).toBe('ai.settings.context');
    expect(index.factsOf('ai.settings.a').group).toBe('ai.settings');
  });
});
