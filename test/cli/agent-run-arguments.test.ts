import { describe, expect, it } from 'vitest';
import { parseArguments } from '../../src/cli/arguments.ts';

describe('the arguments of run', () => {
  it.each<[string[], object]>([
    [['agent', '--input', '{}'], { assistant: 'agent', input: '{}', modes: ['messages-tuple'], feedbackKeys: [] }],
    [['agent', '--message', 'hello there'], { message: 'hello there', input: undefined }],
    [['agent', '--input', '@in.json', '--thread', 't1', '--json'], { input: '@in.json', thread: 't1', isJson: true }],
    [['agent', '--input', '-', '--mode', 'updates', '--mode', 'values'], { input: '-', modes: ['updates', 'values'] }],
    [
      ['agent', '--input', '{}', '--feedback', 'liked', '--feedback', 'right', '--timeout', '2m'],
      { feedbackKeys: ['liked', 'right'], timeoutMs: 120_000 },
    ],
    [['agent', '--input', '{}', '--url', 'http://127.0.0.1:2024'], { url: new URL('http://127.0.0.1:2024') }],
  ])('%j', (argv, expected) => {
    expect(parseArguments(['run', ...argv])).toMatchObject({ kind: 'run', ...expected });
  });

  it.each<[string[], string]>([
    [[], 'expected an assistant after run'],
    [['agent'], 'expected --input, --message or --resume'],
    [['agent', 'more', '--input', '{}'], 'unexpected "more"'],
    [['agent', '--input', '{}', '--message', 'a'], 'of --input, --message and --resume one can be given'],
    [['agent', '--resume', 'true'], '--resume goes with --thread'],
    [
      ['agent', '--input', '{}', '--mode', 'all'],
      'expected --mode to be one of values, messages, messages-tuple, updates, events, tasks, checkpoints, debug, custom, tools, got "all"',
    ],
    [['agent', '--input', '{}', '--timeout', '1d'], 'expected --timeout to be like 90s, 15m or 1h'],
    [['agent', '--input', '{}', '--url', 'ftp://host'], 'expected --url to be an http or https address'],
  ])('%j are a mistake that is named', (argv, message) => {
    expect(parseArguments(['run', ...argv])).toEqual({ kind: 'mistake', topic: 'run', message });
  });
});
