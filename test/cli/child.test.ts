import { expect, it } from 'vitest';
import { handedOn } from '../../src/cli/child.ts';

type Signals = readonly (NodeJS.Signals | undefined)[];

it.each<[NodeJS.Signals, string, boolean, Signals]>([
  ['SIGINT', 'a terminal', true, [undefined, 'SIGINT', 'SIGKILL', 'SIGKILL']],
  ['SIGHUP', 'a terminal', true, [undefined, 'SIGHUP', 'SIGKILL', 'SIGKILL']],
  ['SIGTERM', 'a terminal', true, ['SIGTERM', 'SIGTERM', 'SIGKILL', 'SIGKILL']],
  ['SIGINT', 'no terminal', false, ['SIGINT', 'SIGINT', 'SIGKILL', 'SIGKILL']],
  ['SIGHUP', 'no terminal', false, ['SIGHUP', 'SIGHUP', 'SIGKILL', 'SIGKILL']],
  ['SIGTERM', 'no terminal', false, ['SIGTERM', 'SIGTERM', 'SIGKILL', 'SIGKILL']],
])(
  '%s in %s is handed on where the command has not got it already, and kills at last',
  (signal, _, isInTerminal, sent) => {
    expect(sent.map((_, index) => handedOn(signal, index + 1, isInTerminal))).toEqual(sent);
  },
);
