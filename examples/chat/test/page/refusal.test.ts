import { expect, test } from 'vitest';
import { refusalOf } from '../../page/refusal.ts';

const TOO_LONG = 'This is too long for the server. Make it shorter, or send it in parts.';
const TOO_OLD = 'The server does not understand this page, which may be older than the server. Reload the page.';

test.each([
  [413, '{"message":"A body may have 4194304 bytes."}', TOO_LONG],
  [413, '<html><h1>413 Request Entity Too Large</h1></html>', TOO_LONG],
  [
    422,
    '{"detail":[{"loc":["body","id"],"msg":"Expected a number"},{"loc":["body",0],"msg":"No"}]}',
    `${TOO_OLD} (body.id: Expected a number; body.0: No)`,
  ],
  [422, '{"detail":[null,{"loc":"x","msg":7}]}', `${TOO_OLD} (request: is wrong; request: is wrong)`],
  [422, '', TOO_OLD],
  [502, '<html>', 'The server is away for the moment (502). Try again in a while.'],
  [503, '{}', 'The server is away for the moment (503). Try again in a while.'],
  [504, '', 'The server is away for the moment (504). Try again in a while.'],
  [502, '{"message":"The service for traces failed."}', 'The service for traces failed.'],
  [403, '{"detail":"not yours"}', 'not yours'],
  [500, '{"message":"The request failed.","detail":"The request failed."}', 'The request failed.'],
  [500, 'null', 'The server answered 500.'],
])('an answer of %i with %s', (status, body, told) => {
  expect(refusalOf(status, body)).toBe(told);
});
