// The same programs, bare and traced, in processes of their own: what comes in pieces is consumed in the same way.
import { describe, expect, test } from 'vitest';
import type { RunRecord } from '../../src/run/record.ts';
import { type Program, runProgram } from './built.ts';

const cancelled = { end_reason: 'cancelled' };

/** What is recorded of the one run of each program: its chunks, its error, how it ended; `open` when it has not. */
type Told = { chunks?: unknown; error?: RegExp; metadata?: object; open?: true };

/** Node 26 reads streams for `Response.clone` and `Readable.fromWeb` without calling methods of the stream or its reader. */
const readInside = Number.parseInt(process.versions.node, 10) >= 26;

describe('a program does the same with', () => {
  test.each<[string, Told]>([
    ['a web stream that nobody reads', { open: true }],
    ['a web stream that is left and read on', { chunks: ['a', 'b', 'c'] }],
    [
      'a web stream of bytes, into the memory of its reader',
      { chunks: [bytes('ab'), bytes('c')], metadata: cancelled },
    ],
    ['a web stream in two branches, both cancelled', { chunks: ['a'], metadata: cancelled }],
    ['a web stream that fails, read by nobody who handles it', { error: /^TypeError: torn\n/ }],
    ['a web stream as the body of a response', { chunks: [bytes('a'), bytes('b'), bytes('c')] }],
    [
      'a web stream as a body that is cloned',
      { chunks: readInside ? undefined : [bytes('a'), bytes('b'), bytes('c')] },
    ],
    ['a web stream as a Node stream', { chunks: readInside ? undefined : ['a', 'b', 'c'] }],
    ['a web stream as a Node stream that fails', { error: /^TypeError: torn\n/ }],
    ['a web stream handed to another thread', {}],
    ['a web stream that is locked', { open: true }],
    ['a Node stream that nobody reads', { open: true }],
    ['a Node stream iterated to a break', { chunks: ['a'], metadata: cancelled }],
    ['a Node stream by events', { chunks: ['a', 'b', 'c'] }],
    ['a Node stream read when it is readable', { chunks: ['ab', 'c'] }],
    ['a Node stream in a pipeline', { chunks: ['a', 'b', 'c'] }],
    ['a Node stream in a pipeline that is aborted', { chunks: ['a'], error: /^AbortError: /, metadata: cancelled }],
    ['a Node stream as a web stream', { chunks: ['a', 'b', 'c'] }],
    ['a Node stream that is destroyed', { metadata: cancelled }],
    ['a Node stream that fails', { chunks: ['a'], error: /^TypeError: torn\n/ }],
    ['a Node stream whose error nobody hears', { error: /^TypeError: torn\n/ }],
    ['a Node stream with many listeners', { metadata: cancelled }],
    ['an async iterable', { chunks: [1, 2] }],
    ['an async iterable that nobody reads', { open: true }],
  ])('%s', async (way, told) => {
    const runs = await compared(way, /nobody (who )?h(ears|andles)/.test(way) ? 1 : 0);
    expect(runs).toHaveLength(1);
    const [run] = runs;
    expect('end_time' in (run ?? {})).toBe(told.open === undefined);
    expect(run?.outputs?.outputs).toEqual(told.chunks);
    expect(run?.error).toEqual(told.error && expect.stringMatching(told.error));
    expect(run?.extra?.metadata).toEqual(told.metadata);
    const hasToken = Array.isArray(told.chunks) && told.chunks.length > 0;
    expect(run?.events?.map((event) => event.name)).toEqual(hasToken ? ['new_token'] : undefined);
  });

  test.each(['collections', 'an async iterable as an argument'])('%s', async (way) => {
    const runs = await compared(way, 0);
    expect(runs.every((run) => 'end_time' in run && run.error === undefined)).toBe(true);
    expect(runs.length).toBeGreaterThan(0);
  });
});

/** The runs of the traced program, which has done the same as the bare one. */
async function compared(way: string, code: number): Promise<RunRecord[]> {
  const both = ['bare', 'traced'].map((mode) => runProgram('sequences', [mode, way]));
  const [{ runs: none, ...bare }, { runs, ...traced }] = (await Promise.all(both)) as [Program, Program];
  expect(bare.code).toBe(code);
  if (code === 0) expect(bare.stdout).toMatch(/^end of the program$/m);
  expect({ ...traced, stderr: withoutPlace(traced.stderr) }).toEqual({ ...bare, stderr: withoutPlace(bare.stderr) });
  expect(none).toEqual([]);
  return runs;
}

/** Removes the source line above an uncaught error, which V8 does not know once the stack has been read. */
function withoutPlace(stderr: string): string {
  return stderr.replace(/^(file|node):.*\n.*\n\s*\^+\n/m, '');
}

/** Binary data as payloads hold it. */
function bytes(text: string): object {
  return { type: expect.any(String), byteLength: text.length, base64: Buffer.from(text).toString('base64') };
}
