import { expect, test } from 'vitest';
import { ingestServer } from '../support/ingest-server.ts';
import { moduleText, runNode } from '../support/program.ts';

const text = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`;

const SHIM = text('export class Agent {} export class Pool {} export class ProxyAgent {} export default {};');

/** A program in which undici has none of the files that the library loads. With `isShim`, its classes are stubs too. */
const programWith = (isShim: boolean): string[] => {
  const hook = `export const resolve = (name, context, next) => {
    if (name.startsWith('undici/lib/')) throw new Error('no such file');
    return ${isShim} && name === 'undici' ? { url: ${JSON.stringify(SHIM)}, shortCircuit: true } : next(name, context);
  };`;
  const registered = text(`import { register } from 'node:module'; register(${JSON.stringify(text(hook))});`);
  return ['--no-warnings', '--import', registered, ...moduleText(PROGRAM)];
};

const PROGRAM = `
  import { flush, traceable } from 'runspan';
  console.log(await traceable(async () => 'the application ran', { name: 'ask' })());
  console.log('flushed', typeof (await flush({ timeoutMs: 100 })).ok);
  process.exitCode = 3;`;

test('without the HTTP client of undici, a program keeps its exit code, a flush resolves, and one log line reports that delivery is off', async () => {
  await using server = await ingestServer();
  const { code, stdout, stderr } = await runNode(programWith(true), { RUNSPAN_ENDPOINT: server.url });
  expect(stdout).toBe('the application ran\nflushed boolean\n');
  const lines = stderr.split('\n').filter((line) => /failed: .*delivery is off/.test(line));
  expect(lines).toEqual([expect.stringContaining('undici')]);
  expect(stderr.split('\n').filter((line) => !line.startsWith('runspan: '))).toEqual(['']);
  expect(code).toBe(3);
  expect(server.received).toEqual([]);
});

test('with a version of undici that has other files, runs are delivered', async () => {
  await using server = await ingestServer();
  const { code, stderr } = await runNode(programWith(false), { RUNSPAN_ENDPOINT: server.url });
  expect([code, stderr]).toEqual([3, '']);
  expect(server.received).toHaveLength(1);
});
