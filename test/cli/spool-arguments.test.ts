import { describe, expect, it } from 'vitest';
import { parseArguments } from '../../src/cli/arguments.ts';

const HASH = '6f1f4ab0a32f6a9f43a0b7b3f5c55b0e';

const DEFAULTS = {
  kind: 'spool',
  dir: undefined,
  endpoint: undefined,
  from: [],
  includesBad: false,
  isConfirmed: false,
  isAll: false,
};

describe('the arguments of runspan spool', () => {
  it.each<[string, object]>([
    ['list', { ...DEFAULTS, action: 'list' }],
    ['send --bad', { ...DEFAULTS, action: 'send', includesBad: true }],
    [`send --from ${HASH} --from=${HASH}`, { ...DEFAULTS, action: 'send', from: [HASH, HASH] }],
    ['purge', { ...DEFAULTS, action: 'purge' }],
    ['purge --yes', { ...DEFAULTS, action: 'purge', isConfirmed: true }],
    ['--yes purge --all', { ...DEFAULTS, action: 'purge', isConfirmed: true, isAll: true }],
    [
      'list --dir /x --endpoint=http://h/api',
      { ...DEFAULTS, action: 'list', dir: '/x', endpoint: new URL('http://h/api') },
    ],
    ['--help', { kind: 'help', topic: 'spool' }],
    ['purge -h', { kind: 'help', topic: 'spool' }],
  ])('"%s" are understood', (text, expected) => {
    expect(parseArguments(['spool', ...text.split(' ')])).toEqual(expected);
  });

  it.each<[string[], string]>([
    [[], 'expected list, send or purge after spool'],
    [['drain'], 'unknown command "spool drain"'],
    [['list', 'purge'], 'unexpected "purge"'],
    [['list', '--yes'], '--yes and --all belong to spool purge'],
    [['list', '--all'], '--yes and --all belong to spool purge'],
    [['purge', '--bad'], '--from and --bad belong to spool send'],
    [['list', '--from', HASH], '--from and --bad belong to spool send'],
    [['send', '--from', '../x'], 'expected --from to be a destination that runspan spool list shows'],
    [['send', '--from'], 'expected --from to be a destination that runspan spool list shows'],
    [['purge', '--yes=no'], 'expected no value for --yes'],
    [['list', '--dir'], 'expected --dir to be a folder'],
    [['list', '--dir='], 'expected --dir to be a folder'],
    [['list', '--endpoint', 'here'], 'expected --endpoint to be an http or https address'],
    [['list', '--endpoint', 'file:///x'], 'expected --endpoint to be an http or https address'],
    [['list', '-x'], 'unknown option "-x"'],
  ])('%j are a mistake', (argv, message) => {
    expect(parseArguments(['spool', ...argv])).toEqual({ kind: 'mistake', message, topic: 'spool' });
  });
});
