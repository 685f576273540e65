import { expect, test } from 'vitest';
import { vocabularies } from '../../src/otel/mapping.ts';
import { RowIndex } from '../../src/otel/row-index.ts';
import { SpanShapes } from '../../src/otel/span-shape.ts';

const shapesOf = () => {
  const index = new RowIndex(vocabularies);
  const shapes = new SpanShapes(index);
  const of = (attributes: Record<string, unknown>) => shapes.of(Object.keys(attributes), attributes);
  return { index, of };
};

test('spans with the same names in the same order have one shape', () => {
  const { of } = shapesOf();
  const shape = of({ 'gen_ai.system': 'a', 'input.value': 'b' });
  expect(of({ 'gen_ai.system': 'c', 'input.value': 'd' })).toBe(shape);
  expect(of({ 'gen_ai.system': 'c' })).not.toBe(shape);
  expect(of({ 'input.value': 'd', 'gen_ai.system': 'c' })).not.toBe(shape);
});

test('spans with the same names have two, where the values say that they speak two vocabularies', () => {
  const { of } = shapesOf();
  const names = (attributes: Record<string, unknown>): string[] => of(attributes).spoken.map(({ name }) => name);
  const [spoken, unspoken] = [{ 'openinference.span.kind': 'LLM' }, { 'openinference.span.kind': undefined }];
  expect(names(spoken)).toContain('openinference');
  expect(names(unspoken)).not.toContain('openinference');
  expect(names(spoken)).toContain('openinference');
});

test.each([199, 200, 201])('a span of %i attributes has all its rows', (count) => {
  const { of } = shapesOf();
  const attributes = Object.fromEntries(Array.from({ length: count - 1 }, (_, at) => [`x.${at}`, at]));
  const { rows, spoken } = of({ ...attributes, 'input.value': 'a' });
  expect(rows.get('inputs')?.map(({ row }) => row[0])).toEqual(['input.value']);
  expect(spoken.map(({ name }) => name)).toContain('general');
});

test('of names without end those of late are kept, and none is read otherwise for it', () => {
  const { index, of } = shapesOf();
  const shape = of({ 'input.value': 'a' });
  let asked = 0;
  const { factsOf } = index;
  index.factsOf = (name) => {
    asked++;
    return factsOf.call(index, name);
  };
  for (let number = 0; number < 9_000; number++) of({ [`x.${number}`]: 1 });
  expect(of({ 'input.value': 'a' })).toBe(shape);
  for (let number = 9_000; number < 11_000; number++) of({ [`x.${number}`]: 1 });
  const again = of({ 'input.value': 'a' });
  expect(again).not.toBe(shape);
  expect(again).toEqual(shape);
  asked = 0;
  of({ 'input.value': 'b' });
  expect(asked).toBe(0);
});
