import { expect, it } from 'vitest';
import { moduleText, runNode } from './support/program.ts';

/** Prints whether undici is loaded after the import of the library, right after the code has run, and some time later. */
const program = (code: string, isExpected: boolean): string => `
  import { createRequire } from 'node:module';
  const { cache } = createRequire(import.meta.url);
  const isLoaded = () => Object.keys(cache).some((path) => /node_modules[\\\\/]undici[\\\\/]/.test(path));
  const runspan = await import('runspan');
  const { wrapOpenAI } = await import('runspan/openai');
  const { wrapModel } = await import('runspan/ai');
  const { RunspanCallbackHandler } = await import('runspan/langchain');
  const loadedWithin = async (ms) => {
    for (const endMs = performance.now() + ms; performance.now() < endMs && !isLoaded(); ) await new Promise(setImmediate);
  };
  const client = { chat: { completions: { create() {} } } };
  await loadedWithin(50);
  const states = [isLoaded()];
  ${code};
  states.push(isLoaded());
  await loadedWithin(${isExpected ? 10_000 : 100});
  states.push(isLoaded());
  console.log(JSON.stringify(states));
`;

const endpoint = { RUNSPAN_ENDPOINT: 'http://127.0.0.1:9', RUNSPAN_LOG: 'silent' };

it.each<[code: string, env: Record<string, string>, isLoadedLater: boolean]>([
  ['runspan.configure({ endpoint: "http://127.0.0.1:9" })', {}, true],
  ['wrapOpenAI(client)', endpoint, true],
  ['wrapModel({ specificationVersion: "v2", doGenerate() {}, doStream() {} })', endpoint, true],
  ['new RunspanCallbackHandler()', endpoint, true],
  ['runspan.traceable(() => 1)', endpoint, false],
  ['wrapOpenAI(client)', { ...endpoint, RUNSPAN_TRACING: 'false' }, false],
  ['wrapOpenAI(client)', { LANGSMITH_TRACING: 'true', LANGSMITH_API_KEY: 'key' }, true],
  ['wrapOpenAI(client)', { LANGSMITH_TRACING: 'false', LANGSMITH_API_KEY: 'key' }, false],
  ['wrapOpenAI(client)', {}, false],
  ['runspan.configure({ tracing: false })', endpoint, false],
])('after %s in the environment %j, the HTTP client is loaded before any run: %s', async (code, env, isLoadedLater) => {
  const { stdout, stderr } = await runNode(moduleText(program(code, isLoadedLater)), env);

  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual([false, false, isLoadedLater]);
});

it('the HTTP client is loaded in several turns of the event loop, and does not replace the client of the global fetch', async () => {
  const { stdout } = await runNode(
    moduleText(`
      import { createRequire } from 'node:module';
      import { configure } from 'runspan';
      const { cache } = createRequire(import.meta.url);
      const files = () => Object.keys(cache).filter((path) => /node_modules[\\\\/]undici[\\\\/]/.test(path));
      configure({ endpoint: 'http://127.0.0.1:9' });
      const seen = new Set();
      for (let isLoaded = false; !isLoaded; isLoaded = files().some((path) => /api.index\\.js$/.test(path))) {
        await new Promise(setImmediate);
        seen.add(files().length);
      }
      console.log(JSON.stringify([seen.size > 3, Symbol.for('undici.globalDispatcher.1') in globalThis]));
    `),
  );

  expect(JSON.parse(stdout)).toEqual([true, false]);
});
