// Unhandled rejections, standard error and abandoned streams, each in a process of its own.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runNode } from '../support/program.ts';

const program = fileURLToPath(new URL('./programs/ai.mjs', import.meta.url));

/** Removes the frames of stacks, which differ. */
async function run(kind: 'bare' | 'wrapped', deed: string) {
  const { code, stdout, stderr } = await runNode(['--expose-gc', program, kind, deed]);
  return { code, stdout, stderr: stderr.replaceAll(/^\s+at .*\n|^(file|node):.*\n.*\n\s*\^+\n/gm, '') };
}

describe('a program that', () => {
  it.each([
    ['leaves a rejection unhandled', 1, /RangeError: out of tune/],
    ['reads a stream that fails, without onError', 0, /RangeError: out of tune/],
    ['awaits the text of a stream that fails', 1, /NoOutputGenerated/],
    ['never reads a stream that fails', 0, /^$/],
  ])('%s ends in the same way with tracing', async (deed, code, says) => {
    const [bare, wrapped] = await Promise.all([run('bare', deed), run('wrapped', deed)]);

    expect(bare.code).toBe(code);
    expect(bare.stderr).toMatch(says);
    expect(wrapped).toEqual(bare);
  });

  it('drops a stream has interrupted runs after the stream is collected', async () => {
    const { code, stdout, stderr } = await run('wrapped', 'drops a stream');

    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual([
      ['streamText', true, 'interrupted'],
      ['mock-model-id', true, 'interrupted'],
    ]);
    expect(code).toBe(0);
  });
});
