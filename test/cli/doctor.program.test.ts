import { execFileSync } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { listen } from '../support/listen.ts';
import { runRunspan, startRunspan } from '../support/program.ts';

describe.concurrent('runspan doctor', () => {
  it.skipIf(process.platform === 'win32')(
    'reads no named pipe, which could wait for ever',
    async ({ onTestFinished }) => {
      const folder = temporaryFolder();
      onTestFinished(folder.remove);
      execFileSync('mkfifo', [join(folder.path, '.env')]);
      const { code, stdout } = await startRunspan(['doctor'], {}, folder.path).ended;
      expect([code, stdout]).toEqual([1, expect.stringContaining('off: there is no endpoint')]);
    },
  );

  it('waits 8 seconds for a service that never answers', async ({ onTestFinished }) => {
    const server = createServer((socket) => socket.on('error', () => {}));
    onTestFinished(() => void server.close());
    const { code, stdout } = await runRunspan(['doctor'], { RUNSPAN_ENDPOINT: await listen(server) });
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^fail {2}info +GET \/info: no response within 8000 ms; check that the endpoint is the URL of the service$/m,
    );
  });
});
