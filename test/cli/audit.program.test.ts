import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { moduleText, runRunspan, startRunspan } from '../support/program.ts';

const index = new URL('../../dist/index.js', import.meta.url).href;

/** The arguments of `runspan audit` that start a module given as text. */
const auditOf = (code: string, options: string[] = []): string[] => [
  'audit',
  ...options,
  '--',
  process.execPath,
  ...moduleText(code),
];

const PROGRAM = `
  import { currentRun, flush, traceable } from '${index}';
  const call = traceable((question, login) => {
    currentRun().attach('photo', Buffer.alloc(70), 'image/png');
    return { answer: 42 };
  }, { name: 'call', runType: 'llm', tags: ['shop'] });
  call({ question: 'how many?', password: 'canary' });
  await flush();
  console.log('the program says this');`;

interface Told {
  readonly kind: string;
  readonly fields: { readonly name?: string; readonly inputs?: unknown; readonly outputs?: unknown };
  readonly attachments: unknown;
}

const parsed = (text: string): Told[] =>
  text
    .trim()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));

const folder = temporaryFolder();
afterAll(folder.remove);

describe.concurrent('runspan audit', () => {
  it.skipIf(!existsSync('/dev/full'))('reports a full disk after the command has ended', async () => {
    const { code, stdout, stderr } = await runRunspan(auditOf(PROGRAM, ['--output', '/dev/full']));

    expect(stdout).toBe('the program says this\n');
    expect(stderr).toMatch(/^runspan: cannot write "\/dev\/full": ENOSPC[^\n]*\n$/);
    expect(code).toBe(1);
  });

  it('shows each record after redaction, with sizes and attachments, and leaves stdout to the command', async () => {
    const { code, stdout, stderr } = await runRunspan(auditOf(PROGRAM));

    expect(stdout).toBe('the program says this\n');
    expect(stderr).toMatch(/^post [\da-f-]{36} {2}call, llm$/m);
    expect(stderr).toMatch(/^ {2}inputs +\d+ {2}\{"question":"how many\?","password":"(?!canary)/m);
    expect(stderr).toMatch(/^ {2}outputs +13 {2}\{"answer":42\}$/m);
    expect(stderr).toMatch(/^ {2}tags +8 {2}\["shop"\]$/m);
    expect(stderr).toMatch(/^ {2}attachment +70 {2}"photo" image\/png$/m);
    expect(stderr).toMatch(/^runspan audit: posts: 1, patches: 0, attachments: 1, bytes: \d+; nothing was forwarded$/m);
    expect(stderr).not.toContain('canary');
    expect(code).toBe(0);
  });

  it('sends nothing to the configured service', async () => {
    await using service = await ingestServer();
    const env = { RUNSPAN_ENDPOINT: service.url, RUNSPAN_API_KEY: 'canary-key', LANGSMITH_ENDPOINT: service.url };
    const { stdout, stderr } = await runRunspan(auditOf(PROGRAM), env);

    expect(stderr).toContain('posts: 1');
    expect(service.received).toEqual([]);
    expect(stdout + stderr).not.toContain('canary');
  });

  it('applies sampling and hidden inputs', async () => {
    const { stderr } = await runRunspan(auditOf(PROGRAM), { RUNSPAN_HIDE_INPUTS: 'true' });
    expect(stderr).not.toContain('how many');
    const none = await runRunspan(auditOf(PROGRAM), { RUNSPAN_SAMPLE_RATE: '0' });
    expect(none.stderr).toBe('runspan audit: no runs arrived: RUNSPAN_SAMPLE_RATE is 0, so no run is recorded\n');
  });

  it('prints a line of JSON for each record, as it arrives', async () => {
    const waiting = `${PROGRAM} await new Promise((end) => process.stdin.on('data', end));
      call({ question: 'again?' }); process.stdin.unref();`;
    const { child, ended } = startRunspan(auditOf(waiting, ['--json']));
    const first = await new Promise<string>((resolve) => {
      let text = '';
      child.stderr?.on('data', (chunk) => {
        text += chunk;
        if (text.includes('\n')) resolve(text);
      });
    });
    expect(parsed(first)).toMatchObject([{ kind: 'post', fields: { name: 'call', outputs: { answer: 42 } } }]);
    child.stdin?.end('go on');
    const { stderr } = await ended;
    expect(parsed(stderr).map(({ fields }) => fields.inputs)).toMatchObject([
      { question: 'how many?' },
      { question: 'again?' },
    ]);
    expect(parsed(stderr)[0]?.attachments).toEqual([{ name: 'photo', mime_type: 'image/png', size: 70 }]);
  });

  it('writes the records to a file that only its owner can read, and prints only the last line', async () => {
    const file = join(folder.path, 'audit.jsonl');
    writeFileSync(file, 'from before', { mode: 0o644 });
    const { stderr } = await runRunspan(auditOf(PROGRAM, ['--json', '--output', file]));

    expect(stderr).toMatch(/^runspan audit: posts: 1, .*\n$/);
    expect(parsed(readFileSync(file, 'utf8'))).toHaveLength(1);
    expect(readFileSync(file, 'utf8')).not.toContain('from before');
    if (process.platform !== 'win32') expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('does not start the command if the file cannot be written', async () => {
    const { code, stdout, stderr } = await runRunspan(auditOf(PROGRAM, ['--output', folder.path]));
    expect(stderr).toMatch(/^runspan: cannot write ".*": EISDIR.*\n$/);
    expect([code, stdout]).toEqual([1, '']);
  });

  it('exits with the exit code or signal of the command', async () => {
    expect(await runRunspan(auditOf('process.exitCode = 7;'))).toMatchObject({
      code: 7,
      stderr: expect.stringMatching(/^runspan audit: no runs arrived; .*endpoint/),
    });
    const { signal, stderr } = await runRunspan(
      auditOf(`${PROGRAM} process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1_000);`),
    );
    expect([signal, stderr.includes('posts: 1')]).toEqual(['SIGTERM', true]);
  });
});
