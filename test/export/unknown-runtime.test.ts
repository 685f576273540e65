import { expect, test } from 'vitest';
import { ingestServer } from '../support/ingest-server.ts';
import { moduleText, runNode } from '../support/program.ts';

const text = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`;

/** Removes a function before the program starts. */
const WITHOUT_UTILIZATION = text(`
  delete Object.getPrototypeOf(performance).eventLoopUtilization;
  delete performance.eventLoopUtilization;`);

/** Replaces undici's classes with stubs without methods, like those in Bun 1.4. */
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

test.each([
  ['performance.eventLoopUtilization', WITHOUT_UTILIZATION, 'performance.eventLoopUtilization'],
  ['the HTTP client of undici', WITH_SHIM, 'undici'],
])(
  'without %s, a program keeps its exit code, a flush resolves, and one log line reports that delivery is off',
  async (_, preload, named) => {
    await using server = await ingestServer();
    const { code, stdout, stderr } = await runNode(['--no-warnings', '--import', preload, ...moduleText(PROGRAM)], {
      RUNSPAN_ENDPOINT: server.url,
    });
    expect(stdout).toBe('the application ran\nflushed boolean\n');
    const lines = stderr.split('\n').filter((line) => line.includes('delivery is off'));
    expect(lines).toEqual([expect.stringContaining(named)]);
    expect(stderr.split('\n').filter((line) => !line.startsWith('runspan: '))).toEqual(['']);
    expect(code).toBe(3);
    expect(server.received).toEqual([]);
  },
);
