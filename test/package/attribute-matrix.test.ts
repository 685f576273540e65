import { describe, expect, it } from 'vitest';
import { vocabularies } from '#src/otel/mapping/row-index.ts';
import { mapped } from '../otel/mapped.ts';
import { attributeMatrix, groupsOf } from './attribute-matrix.ts';
import { notes } from './attribute-notes.ts';

it('the committed page about attributes is up to date; npm run generate updates it', async () => {
  const page = attributeMatrix(vocabularies);
  await expect(page).toMatchFileSnapshot('../../docs/opentelemetry-attributes.md', 'update it with: npm run generate');
});

it('each vocabulary has a unique title', () => {
  const titles = vocabularies.map(({ name }) => notes[name]?.title);
  expect(new Set(titles).size).toBe(vocabularies.length);
  expect(titles).not.toContain(undefined);
});

describe.each(vocabularies.map((vocabulary) => [vocabulary.name, vocabulary] as const))('%s', (name, vocabulary) => {
  const { omitted = {}, kinds = [] } = notes[name] ?? {};
  const attributes = Object.values(omitted).flat();
  const read = new Set(groupsOf(vocabulary).flatMap(([, rows]) => rows.map(([attribute]) => attribute)));

  it('has no row for an omitted attribute', () => {
    expect(attributes.filter((attribute) => read.has(attribute))).toEqual([]);
  });

  it('leaves omitted attributes in the metadata', () => {
    for (const attribute of attributes) {
      const key = attribute.replace(/\*$/, 'something');
      const { metadata } = mapped({ ...kinds[0], [key]: 'left' });
      expect([key, metadata[key]]).toEqual([key, 'left']);
    }
  });
});
