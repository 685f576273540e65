import { describe, expect, test } from 'vitest';
import { PathPlace, type Step } from '../../src/payload/redact.ts';

const isHidden = (path: string, ...steps: (Step | undefined)[]): boolean => {
  let place = PathPlace.root([path]);
  for (const step of steps) place = place?.step(step);
  return place?.isEnd === true;
};

describe('a path', () => {
  test.each<[string, (Step | undefined)[], boolean]>([
    ['inputs.user.email', ['inputs', 'user', 'email'], true],
    ['inputs.user.email', ['inputs', 'user'], false],
    ['inputs.user.email', ['inputs', 'user', 'email', 'x'], false],
    ['inputs.user.email', ['outputs', 'user', 'email'], false],
    ['inputs', ['inputs'], true],
    ['inputs.*.email', ['inputs', 'user', 'email'], true],
    ['inputs.*.email', ['inputs', 0, 'email'], true],
    ['inputs.*.email', ['inputs', 'email'], false],
    ['inputs.*.email', ['inputs', 'a', 'b', 'email'], false],
    ['outputs.**.token', ['outputs', 'token'], true],
    ['outputs.**.token', ['outputs', 'a', 3, 'b', 'token'], true],
    ['outputs.**.token', ['outputs', 'a', 'token', 'b'], false],
    ['outputs.**.a.**.b', ['outputs', 'a', 'x', 'a', 'b'], true],
    ['outputs.**.a.**.b', ['outputs', 'b', 'a'], false],
    ['**.email', ['metadata', 'email'], true],
    ['**.email', ['events', 7, 'kwargs', 'to', 'email'], true],
    ['*.email', ['inputs', 'email'], true],
    ['inputs.**', ['inputs', 'a', 'b'], true],
    ['events.*.kwargs.x', ['events', 2, 'kwargs', 'x'], true],
    ['events[*].kwargs.x', ['events', undefined, 'kwargs', 'x'], true],
    ['events.**.x', ['events', undefined, 'kwargs', 'x'], true],
    ['events.*.kwargs.x', ['events', undefined, 'kwargs', 'x'], true],
    ['inputs.messages[*].content', ['inputs', 'messages', 4, 'content'], true],
    ['inputs.messages.[*].content', ['inputs', 'messages', 4, 'content'], true],
    ['inputs.messages[*].content', ['inputs', 'messages', 'last', 'content'], false],
    ['inputs.messages[1].content', ['inputs', 'messages', 1, 'content'], true],
    ['inputs.messages[1].content', ['inputs', 'messages', 2, 'content'], false],
    ['inputs.messages.1.content', ['inputs', 'messages', 1, 'content'], true],
    ['inputs.messages[1].content', ['inputs', 'messages', undefined, 'content'], true],
    ['tags.1', ['tags', undefined], true],
    ['tags[*]', ['tags', undefined], true],
    ['attachments.*', ['attachments', undefined], true],
    ['attachments.**', ['attachments', undefined], true],
    ['error.**', ['error'], true],
    ['**.email', ['tags', undefined], false],
    ['inputs["a.b"].c', ['inputs', 'a.b', 'c'], true],
    ['inputs["a.b"].c', ['inputs', 'a', 'b', 'c'], false],
    ['inputs.__proto__.constructor', ['inputs', '__proto__', 'constructor'], true],
    ['metadata.user-id', ['metadata', 'user-id'], true],
  ])('%s and the way %j: %s', (path, steps, expected) => {
    expect(isHidden(path, ...steps)).toBe(expected);
  });

  test.each([
    '',
    '.',
    'inputs.',
    '.inputs',
    'inputs..a',
    'inputs.a b',
    'inputs[',
    'inputs[a]',
    'error.message',
    'error.**.message',
    'name[0]',
    'tags.first',
    'tags[0].x',
    'tags.**.first',
    'events.kwargs.x',
    'attachments.photo',
    'attachments["photo"]',
    'attachments[*].bytes',
    'inputs["a]',
    'inputs.***',
    'user.email',
    '[0].a',
    'input.a',
  ])('is none: %j', (path) => {
    expect(() => PathPlace.root([path])).toThrow(SyntaxError);
  });
});

test('of several paths any may lead to the place', () => {
  const root = PathPlace.root(['inputs.a.b', '**.c', 'inputs.*.d']);
  const below = root?.step('inputs')?.step('a');
  expect(['b', 'c', 'd', 'e'].map((key) => below?.step(key)?.isEnd)).toEqual([true, true, true, false]);
});

test('where no path leads there is no place', () => {
  expect(PathPlace.root([])).toBeUndefined();
  expect(PathPlace.root(['inputs.a'])?.step('outputs')).toBeUndefined();
});

test('more steps than are remembered are found all the same', () => {
  const root = PathPlace.root(['inputs.*.x'])?.step('inputs');
  for (let key = 0; key < 3_000; key++) expect(root?.step(`k${key}`)?.step('x')?.isEnd).toBe(true);
});
