import { mkdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { type SendOptions, sendSpool } from '#src/cli/spool/send.ts';
import type { Segment } from '#src/delivery/spool/spool.ts';
import { runMain } from '../support/command.ts';
import { logLines } from '../support/log-lines.ts';
import { startReceiver } from '../support/receiver.ts';
import { killOwners, laterVersion, makeRecord, segmentsBelow, spoolFolder } from '../support/spool.ts';

async function sent(dir: string, url: string, options: SendOptions = {}, patienceMs = 10_000) {
  let text = '';
  const print = (more: string): void => {
    text += `${more}\n`;
  };
  const code = await sendSpool({ dir, endpoint: new URL(url), ...options }, print, patienceMs);
  return { code, text };
}

async function left(...numbers: number[]) {
  logLines();
  const receiver = await startReceiver();
  const folder = spoolFolder();
  const destination = { endpoint: new URL(receiver.url), workspaceId: undefined, apiKey: undefined };
  for (const number of numbers) folder.open(destination).spill([makeRecord(number)]);
  if (numbers.length > 0) {
    killOwners(folder.dir);
    // The spools are still open, and their heartbeats must not revive the owners in a slow test.
    folder.time.wallMs -= 30_000;
  }
  return { ...folder, receiver, destination };
}

/** Moves a file to the damaged ones, where it has been for three days. */
function setAside(path: string): void {
  const bad = join(dirname(dirname(path)), 'bad');
  mkdirSync(bad, { recursive: true, mode: 0o700 });
  const target = join(bad, basename(path));
  renameSync(path, target);
  const threeDaysAgo = Date.now() / 1_000 - 3 * 86_400;
  utimesSync(target, threeDaysAgo, threeDaysAgo);
}

test('the runs of dead processes are delivered, and no file is left', async () => {
  const { dir, receiver } = await left(1, 2, 3);
  expect(await sent(dir, receiver.url)).toEqual({ code: 0, text: `delivered 3 of 3 runs to ${receiver.url}\n` });
  expect(await receiver.runs()).toHaveLength(3);
  expect(segmentsBelow(dir)).toEqual([]);
  expect((await sent(dir, receiver.url)).text).toBe(`no runs to send for ${receiver.url} without a key\n`);
});

test('runs that cannot be delivered are counted and kept', async () => {
  const { dir, receiver } = await left(1, 2, 3);
  await receiver.close();
  const { code, text } = await sent(dir, receiver.url, {}, 1_000);
  expect(text).toMatch(/^delivered 0 of 3 runs to \S+\nthe other runs remain on disk: .*ECONNREFUSED.*\n$/);
  expect(code).toBe(1);
  expect(segmentsBelow(dir)).toHaveLength(3);
});

test('a file that cannot be claimed is kept, with exit code 1', async () => {
  const { dir, receiver } = await left(1);
  const path = join(dir, segmentsBelow(dir)[0] as string);
  writeFileSync(path, laterVersion(readFileSync(path)));
  const { code, text } = await sent(dir, receiver.url);
  expect(text).toMatch(/^the other runs remain on disk: some files in \S+ could not be claimed or read\n$/);
  expect(code).toBe(1);
});

test('damaged files are reported once', async () => {
  const { dir, receiver } = await left(1, 2);
  writeFileSync(join(dir, segmentsBelow(dir)[0] as string), 'rubbish');
  expect(await sent(dir, receiver.url)).toEqual({
    code: 1,
    text: `delivered 1 of 2 runs to ${receiver.url}\n1 run dropped\n1 file damaged and set aside\n`,
  });
  expect(await sent(dir, receiver.url)).toEqual({
    code: 0,
    text: `no runs to send for ${receiver.url} without a key\n`,
  });
});

test('--bad sends the files that are completely readable', async () => {
  const { dir, receiver, destination, open } = await left();
  const records = [makeRecord(1), makeRecord(2)];
  setAside((open(destination).spill(records) as Segment).path);
  // The readable record was delivered before the file was set aside.
  const { path } = open(destination).spill([makeRecord(3)]) as Segment;
  writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.from('rubbish')]));
  setAside(path);
  killOwners(dir);

  const send = (...flags: string[]) => runMain(['spool', 'send', '--dir', dir, '--endpoint', receiver.url, ...flags]);
  expect(await send()).toMatchObject({ code: 0, stdout: `no runs to send for ${receiver.url} without a key\n` });
  expect(await send('--bad')).toMatchObject({
    code: 0,
    stdout: `delivered 2 of 2 runs to ${receiver.url}\n1 damaged file not sent, kept on disk\n`,
  });
  expect((await receiver.runs()).map(({ id }) => id).sort()).toEqual(records.map(({ run }) => run.id).sort());
  expect(segmentsBelow(dir).map((path) => basename(dirname(path)))).toEqual(['bad']);
});

test('--bad keeps files that the service does not accept', async () => {
  const { dir, receiver, destination, open } = await left();
  setAside((open(destination).spill([makeRecord(1)]) as Segment).path);
  killOwners(dir);
  await receiver.close();
  expect((await sent(dir, receiver.url, { bad: true }, 1_000)).text).toMatch(/^delivered 0 of 1 run /);
  expect(basename(dirname(segmentsBelow(dir)[0] as string))).not.toBe('bad');
});

test('--from with an unknown destination reports an error that names it', async () => {
  const { dir, receiver } = await left(1);
  const from = ['6f1f4ab0a32f6a9f43a0b7b3f5c55b0e'];
  await expect(sent(dir, receiver.url, { from })).rejects.toThrow(`no destination ${from} in ${dir}`);
});

test('the runs of running processes are counted, with exit code 0', async () => {
  const { dir, receiver, destination, open } = await left();
  for (const numbers of [[1, 2], [3]]) open(destination).spill(numbers.map((number) => makeRecord(number)));
  expect(await sent(dir, receiver.url)).toEqual({
    code: 0,
    text: `no runs to send for ${receiver.url} without a key\n3 runs of 2 running processes not sent\n`,
  });
});

test('runs that another process claims first are reported, with exit code 0', async () => {
  const { dir, receiver, destination, open } = await left(1, 2, 3);
  const other = open({ ...destination, wallMs: Date.now });
  const sending = sent(dir, receiver.url);
  // The files have been counted, but not claimed.
  killOwners(dir);
  other.takeOver();
  expect(await sending).toEqual({
    code: 0,
    text: `no runs to send for ${receiver.url} without a key\n3 runs of 1 running process not sent\n`,
  });
});

test('runs for other endpoints, workspaces and keys are reported', async () => {
  const { dir, receiver, destination, open } = await left(1);
  open({ ...destination, apiKey: 'canary-key' }).spill([makeRecord(2)]);
  killOwners(dir);
  const from = 'to send them here, too, add --from with each hash of runspan spool list';
  expect(await sent(dir, receiver.url)).toEqual({
    code: 0,
    text: `delivered 1 of 1 run to ${receiver.url}\nthe folder has runs for 1 other endpoint, workspace or key; ${from}\n`,
  });
});

test('an invalid key is reported', async () => {
  logLines();
  const { dir } = spoolFolder();
  vi.stubEnv('RUNSPAN_API_KEY', 'a key with blanks');
  await expect(sent(dir, 'http://127.0.0.1:4777')).rejects.toThrow('the settings are invalid');
});

test.each(['list', 'send', 'purge'])(
  'spool %s fails if the key of the environment belongs to another origin than --endpoint',
  async (action) => {
    const { dir } = spoolFolder();
    const url = 'http://127.0.0.1:4777';
    const run = (env: Record<string, string>) => runMain(['spool', action, '--dir', dir, '--endpoint', url], env);
    for (const name of ['RUNSPAN_API_KEY', 'RUNSPAN_WORKSPACE_ID']) {
      expect(await run({ RUNSPAN_ENDPOINT: 'http://old.example', [name]: 'canary' })).toMatchObject({
        code: 2,
        stdout: '',
        stderr: `runspan: ${name} is not sent to ${url}, because RUNSPAN_ENDPOINT has another origin; set RUNSPAN_ENDPOINT to ${url}\nRun "runspan spool --help" for help.\n`,
      });
      expect(await run({ RUNSPAN_ENDPOINT: `${url}/v2`, [name]: 'canary' })).toMatchObject({ code: 0, stderr: '' });
    }
  },
);
