import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bareEnvironment, startRunspan } from '../support/program.ts';

/** Writing to this device fails like writing to a full disk. */
const FULL = '/dev/full';

describe('output that cannot be written', () => {
  it.skipIf(!existsSync(FULL)).each([[['--help']], [['traces', '--help']], [['doctor', '--json']]])(
    'to a full disk is reported on one line, with exit code 1: %j',
    (args) => {
      const full = openSync(FULL, 'w');
      onTestFinished(() => closeSync(full));
      const { status, stderr } = spawnSync(process.execPath, ['dist/cli/main.js', ...args], {
        stdio: ['ignore', full, 'pipe'],
        env: bareEnvironment(),
        encoding: 'utf8',
      });
      expect([status, stderr]).toEqual([
        1,
        'runspan: cannot write the output: ENOSPC: no space left on device, write\n',
      ]);
    },
  );

  it('to a reader that has exited is not an error', async () => {
    const { child, ended } = startRunspan(['--help']);
    child.stdout?.destroy();
    expect(await ended).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });
});
