import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Stats } from '#src/delivery/ledger.ts';
import { addsUp } from '../support/adds-up.ts';
import { root } from '../support/folders.ts';
import type { IngestServer } from '../support/ingest-server.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { NO_WRITING, runNode } from '../support/program.ts';
import { service } from './service.ts';

const PROGRAM = join(root, 'test/security/programs/host.mjs');

interface Told {
  readonly left: Stats;
  readonly lines: readonly string[];
  readonly server: IngestServer;
}

/** Runs the program with these flags of Node and checks the results of the application. */
async function runWith(flags: readonly string[]): Promise<Told> {
  const { server } = await service();
  const { code, stdout, stderr } = await runNode([...flags, PROGRAM, server.url, '10000']);
  expect(stderr).not.toContain('    at ');
  expect(code).toBe(0);
  const { left, ...application } = JSON.parse(stdout);
  expect(application).toEqual({ answer: 'hello', isSame: true, list: [0, 1, 2], inside: true, remote: true });
  expect(addsUp(left)).toBe(true);
  return { left, lines: stderr.split('\n').filter((line) => line.startsWith('runspan: ')), server };
}

function expectDelivered({ left, lines, server }: Told): void {
  expect(lines).toEqual([]);
  expect(left).toMatchObject({ created: left.sent, dropped: 0 });
  const parts = server.received.flatMap((request) => [...readJsonParts(request)]);
  const records = parts.filter(([name]) => /^post\.[^.]+$/.test(name)).map(([, json]) => json as { name: string });
  const names = ['by hand', 'identity', 'inner', 'items', 'outer'];
  expect(records.map(({ name }) => name).sort()).toEqual(names);
  expect(JSON.stringify(parts)).toContain('{"q":"hello","password":"[Redacted]"}');
  for (const { headers } of server.received) expect(headers).not.toHaveProperty('x-api-key');
}

test.each([['--disable-proto=delete', '--unhandled-rejections=strict'], ['--frozen-intrinsics'], NO_WRITING])(
  'a program delivers its runs under %s %s',
  async (...flags) => {
    expectDelivered(await runWith(flags));
  },
);

test('a program delivers its runs without `__proto__` and without code from text [security 12]', async () => {
  expectDelivered(await runWith(['--disable-proto=throw', '--disallow-code-generation-from-strings']));
});
