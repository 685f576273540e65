import { expect, test } from 'vitest';
import { InvalidRequestError, validationErrorsOf, validationText } from '../../src/clients/validation-error.ts';

const missing = { loc: ['body', 'name'], msg: 'Field required', type: 'missing' };

test.each<[(string | number)[], string]>([
  [['body', 'source_config', 'repo_url'], 'body.source_config.repo_url: no'],
  [['body', 'secrets', 0, 'name'], 'body.secrets[0].name: no'],
  [[0, 'name'], '[0].name: no'],
  [[], ': no'],
])('the place %j reads %s', (loc, text) => {
  expect(validationText({ loc, msg: 'no', type: 'x' })).toBe(text);
});

test('a step of a place is cut after 100 characters', () => {
  expect(validationText({ loc: ['x'.repeat(101)], msg: 'no', type: 'x' })).toBe(`${'x'.repeat(100)}…: no`);
});

test.each<[string, unknown, unknown[]]>([
  ['a list of FastAPI', { detail: [{ ...missing, input: {}, ctx: {} }] }, [{ ...missing, input: {}, ctx: {} }]],
  [
    'a list with others in it',
    { detail: [null, 'x', { loc: 'body', msg: 'a' }, { loc: [{}], msg: 'a' }, { loc: [] }, missing] },
    [missing],
  ],
  [
    'issues of Zod 3',
    {
      success: false,
      error: { name: 'ZodError', issues: [{ path: ['a', 0], message: 'Required', code: 'invalid_type' }] },
    },
    [{ loc: ['a', 0], msg: 'Required', type: 'invalid_type' }],
  ],
  [
    'issues of Zod 4',
    { success: false, error: { name: 'ZodError', message: '[{"path":["a"],"message":"Required"}]' } },
    [{ loc: ['a'], msg: 'Required', type: 'value_error' }],
  ],
  ['issues that are none', { error: { issues: [null, { path: 'a', message: 'b' }, { path: ['a'] }] } }, []],
  ['issues of Zod that cannot be read', { error: { name: 'ZodError', message: 'no JSON' } }, []],
  ['issues of Zod that are no list', { error: { name: 'ZodError', message: '{}' } }, []],
  ['a text', { detail: 'Not found' }, []],
  ['a list alone', [missing], []],
  ['null', null, []],
  ['text', 'text', []],
])('%s is read', (_, body, errors) => {
  expect(validationErrorsOf(body)).toEqual(errors);
});

test('an invalid request names the call and every mistake', () => {
  const errors = [missing, { loc: ['body', 'source'], msg: 'Expected a source', type: 'enum' }];
  const error = new InvalidRequestError('deployments.create', errors);
  expect(error).toMatchObject({ name: 'InvalidRequestError', code: 'RUNSPAN_INVALID_REQUEST', errors });
  expect(error.message).toBe('deployments.create: body.name: Field required; body.source: Expected a source');
  expect(JSON.stringify(error)).not.toContain('Field required');
});
