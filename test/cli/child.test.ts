import { expect, it } from 'vitest';
import { forwardedSignal } from '../../src/cli/child.ts';

type Signals = readonly (NodeJS.Signals | undefined)[];

it.each<[NodeJS.Signals, string, boolean, Signals]>([
  ['SIGINT', 'in a terminal', true, [undefined, 'SIGINT', 'SIGKILL', 'SIGKILL']],
  ['SIGHUP', 'in a terminal', true, [undefined, 'SIGHUP', 'SIGKILL', 'SIGKILL']],
  ['SIGTERM', 'in a terminal', true, ['SIGTERM', 'SIGTERM', 'SIGKILL', 'SIGKILL']],
  ['SIGINT', 'without a terminal', false, ['SIGINT', 'SIGINT', 'SIGKILL', 'SIGKILL']],
  ['SIGHUP', 'without a terminal', false, ['SIGHUP', 'SIGHUP', 'SIGKILL', 'SIGKILL']],
])('%s %s is forwarded unless the command has received it, and the third signal kills', (signal, _, isTty, sent) => {
  expect(sent.map((_, index) => forwardedSignal(signal, index + 1, isTty))).toEqual(sent);
});
