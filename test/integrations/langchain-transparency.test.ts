import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { run } from '../instrument/built.ts';

const program = fileURLToPath(new URL('./programs/langchain.mjs', import.meta.url));

/** Replaces the random ids of messages. */
async function ended(how: string, env: Record<string, string>) {
  const { stdout, ...rest } = await run(program, [how], env);
  return { ...rest, stdout: stdout.replaceAll(/run-[0-9a-f-]{36}/g, 'run-id') };
}

describe.each(['true', 'false'])('a program of LangChain, LANGCHAIN_CALLBACKS_BACKGROUND=%s', (background) => {
  it('prints, throws and ends the same with and without the handler', async () => {
    const env = { LANGCHAIN_CALLBACKS_BACKGROUND: background };
    const [bare, traced] = await Promise.all([ended('bare', env), ended('traced', env)]);
    expect(traced).toEqual(bare);
    expect(bare.stdout).toContain('one two');
    expect(bare.stdout).toContain('RangeError: refused');
    expect(bare.stderr).toContain('Error: unhandled');
    expect(bare.code).toBe(1);
  });
});
