import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { DEFAULT_SCOPE, MemoryStore, type Receiver, type Store } from '#src/receiver.ts';
import { start } from './wire.ts';

const program = fileURLToPath(new URL('../fixtures/langsmith-program.mjs', import.meta.url));

/** Runs the program against a receiver and returns its output. */
async function runProgram(receiver: Receiver, path: string): Promise<string> {
  const env = {
    PATH: process.env.PATH,
    LANGSMITH_ENDPOINT: receiver.url + path,
    LANGSMITH_TRACING: 'true',
    LANGSMITH_API_KEY: 'key',
    LANGSMITH_PROJECT: 'shop',
  };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program], { env });
  return stdout + stderr;
}

describe.each(['', '/api/v1'])('a program that uses langsmith (path: %j)', (path) => {
  test('sends its runs with parents, payloads, errors and end times', async () => {
    const store: Store = new MemoryStore();
    const receiver = await start({ store });
    expect(await runProgram(receiver, path)).toBe('');

    const [byHand] = await receiver.runs({ filter: 'name:"by hand"' });
    expect(byHand).toMatchObject({
      inputs: { a: 1 },
      outputs: { b: 2 },
      start_time: '2026-11-20T07:22:40.123000Z',
      end_time: '2026-11-20T07:22:41.000000Z',
    });

    const [root] = await receiver.runs({ filter: 'name:answer' });
    const runs = await receiver.trace(root?.id ?? '');
    expect(runs.map(({ name }) => name)).toEqual(['answer', 'search', 'call', 'fail']);
    for (const run of runs) {
      expect(run.parent_run_id).toBe(run === runs[0] ? undefined : root?.id);
      expect(run.trace_id).toBe(root?.id);
      expect(run.session_name).toBe('shop');
      expect(Date.parse(run.end_time ?? '')).toBeGreaterThanOrEqual(Date.parse(run.start_time) - 1);
    }
    const [answer, search, call, fail] = runs;
    expect(answer).toMatchObject({ run_type: 'chain', inputs: { text: 'where' }, outputs: { text: 'found where!' } });
    expect(search).toMatchObject({
      run_type: 'retriever',
      inputs: { input: 'where' },
      outputs: { outputs: ['found where'] },
    });
    expect(call).toMatchObject({
      run_type: 'llm',
      inputs: { prompt: 'found where' },
      outputs: { outputs: ['found where', '!'] },
      tags: ['model'],
      extra: { metadata: { model: 'small' } },
    });
    expect(fail?.error).toMatch(/^TypeError: no such tool/);
    expect(fail).not.toHaveProperty('outputs');

    expect(answer?.attachments).toEqual([{ name: 'photo', mime_type: 'image/png', size: 3 }]);
    expect((await store.attachment(DEFAULT_SCOPE, root?.id ?? '', 'photo'))?.bytes).toEqual(new Uint8Array([1, 2, 3]));
  });
});
