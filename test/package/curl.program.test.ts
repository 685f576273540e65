import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ROOT, start } from '../receiver/wire.ts';
import { guides, read } from './repository.ts';
import { snippetsOf } from './snippets.ts';

/** Returns the shell snippets of a page that send runs or feedback with curl, if any. */
function scriptOf(page: string): string | undefined {
  const codes = snippetsOf(page, read(page)).flatMap(({ language, code }) => (language === 'sh' ? [code] : []));
  const script = codes.filter((code) => /\bcurl\b[\s\S]*127\.0\.0\.1:4777/.test(code)).join('');
  return script === '' ? undefined : script;
}

const scripts = guides.flatMap((page) => {
  const script = scriptOf(page);
  return script === undefined ? [] : [[page, script] as const];
});

test('the pages about feedback and OpenTelemetry have curl commands', () => {
  expect(scripts.map(([page]) => page)).toEqual(expect.arrayContaining(['docs/feedback.md', 'docs/opentelemetry.md']));
});

test.each(scripts)('the curl commands in %s deliver', async (page, script) => {
  const receiver = await start();
  const lines = script.replaceAll('http://127.0.0.1:4777', receiver.url);
  const { stdout } = await promisify(execFile)('sh', ['-e', '-c', lines]);
  const runs = await receiver.runs();
  expect(runs).toMatchObject([{ name: 'answer' }]);
  if (page !== 'docs/feedback.md') return;
  expect(runs[0]?.id).toBe(ROOT);
  expect(stdout).toContain('"key":"user_liked","score":0,"comment":"Not any more"');
});
