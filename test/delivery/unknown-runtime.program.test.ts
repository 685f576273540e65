import { expect, test } from 'vitest';
import { ingestServer } from '../support/ingest-server.ts';
import { moduleText, runNode } from '../support/program.ts';

const text = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`;

/** Replaces undici's classes with stubs without methods. */
const SHIM = text('export class Agent {} export class Pool {} export class ProxyAgent {} export default {};');
const HOOK = `export const resolve = (name, context, next) =>
  name === 'undici' ? { url: ${JSON.stringify(SHIM)}, shortCircuit: true } : next(name, context);`;
const WITH_SHIM = text(`
  import { register } from 'node:module';
  register(${JSON.stringify(text(HOOK))});`);

const PROGRAM = `
  import { flush, traceable } from 'runspan';
  console.log(await traceable(async () => 'the application ran', { name: 'ask' })());
  console.log('flushed', typeof (await flush({ timeoutMs: 100 })).ok);
  process.exitCode = 3;`;

test('without the HTTP client of undici, a program keeps its exit code, a flush resolves, and one log line reports that delivery is off', async () => {
  await using server = await ingestServer();
  const { code, stdout, stderr } = await runNode(['--no-warnings', '--import', WITH_SHIM, ...moduleText(PROGRAM)], {
    RUNSPAN_ENDPOINT: server.url,
  });
  expect(stdout).toBe('the application ran\nflushed boolean\n');
  const lines = stderr.split('\n').filter((line) => /failed: .*delivery is off/.test(line));
  expect(lines).toEqual([expect.stringContaining('undici')]);
  expect(stderr.split('\n').filter((line) => !line.startsWith('runspan: '))).toEqual(['']);
  expect(code).toBe(3);
  expect(server.received).toEqual([]);
});
