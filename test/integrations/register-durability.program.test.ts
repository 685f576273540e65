// What `runspan/register` keeps of a program that crashes or exits.
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ingestServerInTest, type Reply } from '../support/ingest-server.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { moduleText, runNode } from '../support/program.ts';
import { filesBelow } from '../support/spool.ts';
import { testFolder } from '../support/test-folder.ts';
import { localModel } from './local-openai.ts';

/** Defines `ask`, which calls a model, and `delivered`, which resolves when the next request with runs has ended. */
const SET_UP = `
  import { subscribe, unsubscribe } from 'node:diagnostics_channel';
  const ask = async (model) => {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Tea' }] });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(process.env.MODEL + '/v1/chat/completions', { method: 'POST', headers, body });
    await response.json();
  };
  const delivered = () => new Promise((resolve) => {
    const ended = () => {
      unsubscribe('runspan:request:end', ended);
      resolve();
    };
    subscribe('runspan:request:end', ended);
  });
`;

/** A user with an empty home folder, who starts programs one after another. They send their runs to one service. */
async function user(reply?: () => Reply) {
  const [model, server] = await Promise.all([localModel(), ingestServerInTest(reply)]);
  const home = testFolder();
  return {
    home,
    url: server.url,
    files: () => filesBelow(home),
    start: (program: string, env: Readonly<Record<string, string>> = {}) =>
      runNode(['--import', 'runspan/register', ...moduleText(SET_UP + program)], {
        HOME: home,
        RUNSPAN_ENDPOINT: server.url,
        MODEL: model.url,
        ...env,
      }),
    /** The model, and whether the call has an answer, for each run in the order of its arrival. */
    arrived: () =>
      server.received.flatMap((request) => {
        const parts = readJsonParts(request);
        const posts = [...parts].filter(([name]) => /^post\.[^.]+$/.test(name));
        return posts.map(([name, { extra }]) => {
          const { ls_model_name } = (extra as { metadata: Record<string, string> }).metadata;
          return `${ls_model_name}${parts.has(`${name}.outputs`) ? '' : ' without an answer'}`;
        });
      }),
  };
}

/** The line about one run that a program leaves on disk. */
const leftIn = ({ home, url }: { home: string; url: string }): string =>
  `runspan: undelivered runs (1) are on disk; \`runspan spool send --dir ${join(home, '.runspan/spool')} --endpoint ${url}\` or the next process with these settings sends them`;

const LOST =
  'runspan: the process exits with undelivered runs (1), which are lost; await `flush()` before the end, or set RUNSPAN_DURABILITY=spill to keep such runs on disk\n';

test.each([
  ['process.exit(3) after a call', "await ask('last'); process.exit(3);", 3, /^$/],
  ['an uncaught error after a call', "await ask('last'); throw new Error('crash');", 1, /Error: crash/],
  [
    'an uncaught error in a call after an idle time',
    `await Promise.all([ask('first'), delivered()]);
     setTimeout(() => void ask('last').then(() => { throw new Error('crash') }), 500);`,
    1,
    /Error: crash/,
  ],
])('%s leaves the call on disk, and the next start sends it once', async (_, program, code, stderr) => {
  const { home, url, start, files, arrived } = await user();
  const ended = await start(program);
  expect(ended.code).toBe(code);
  const [own, line] = [/^(?!runspan:).*$/gm, /^runspan:.*$/m].map((lines) => ended.stderr.match(lines)?.join('\n'));
  expect(own?.trim()).toMatch(stderr);
  expect(line).toBe(leftIn({ home, url }));
  const before = arrived();
  const [file = '', ...more] = files().filter((path) => path.endsWith('.seg'));
  expect(more).toEqual([]);
  expect(file).toMatch(/^\.runspan\/spool\//);
  expect(statSync(join(home, file)).mode & 0o777).toBe(0o600);

  const next = "await ask('next');";
  expect(await start(next)).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect(arrived().slice(before.length).sort()).toEqual(['last', 'next']);
  expect(files()).toEqual([]);
  await start(next);
  expect(arrived().slice(before.length).sort()).toEqual(['last', 'next', 'next']);
});

test('a program that ends normally leaves no file', async () => {
  const { start, files, arrived } = await user();
  expect(await start("await ask('only');")).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect(arrived()).toEqual(['only']);
  expect(files()).toEqual([]);
});

test('a program that ends normally while the service is unavailable leaves its calls to the next start', async () => {
  let status = 503;
  const { start, arrived, files } = await user(() => ({ status }));
  await start("await ask('first');");
  status = 202;
  const before = arrived().length;
  await start("await ask('second');");
  expect(arrived().slice(before).sort()).toEqual(['first', 'second']);
  expect(files()).toEqual([]);
});

test.each([
  ['RUNSPAN_DURABILITY=memory', '', { RUNSPAN_DURABILITY: 'memory' }],
  ['configure({ durability })', "import { configure } from 'runspan'; configure({ durability: 'memory' });", {}],
])('%s writes nothing to disk', async (_, configured, env) => {
  const { start, files } = await user();
  const ended = await start(`${configured} await ask('last'); process.exit(3);`, env);
  expect(ended).toMatchObject({ code: 3, stderr: LOST });
  expect(files()).toEqual([]);
});

test('`configure` without `durability` does not change what is kept', async () => {
  const { home, url, start, files } = await user();
  const configured = "import { configure } from 'runspan'; configure({ project: 'p' });";
  const stderr = `${leftIn({ home, url })}\n`;
  expect(await start(`${configured} await ask('last'); process.exit(3);`)).toMatchObject({ code: 3, stderr });
  expect(files().filter((path) => path.endsWith('.seg'))).toHaveLength(1);
});

test('a folder that cannot be written is reported in one line, and the program ends as usual', async () => {
  const { home, start, arrived } = await user();
  writeFileSync(join(home, 'file'), '');
  const spoolDir = join(home, 'file', 'spool');
  const program = "await Promise.all([ask('first'), delivered()]); await ask('last'); process.exit(3);";
  const { code, stderr } = await start(program, { RUNSPAN_SPOOL_DIR: spoolDir });
  expect(code).toBe(3);
  expect(stderr).toBe(
    `runspan: spool: cannot write in ${spoolDir} (ENOTDIR); runs are kept in memory only, and writing is retried every minute.\n${LOST.replace(/, or set .*/, '')}`,
  );
  expect(arrived()).toEqual(['first']);
});
