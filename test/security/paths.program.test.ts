import { join } from 'node:path';
import { expect, test } from 'vitest';
import { filesUnder, read } from '../package/repository.ts';
import { sourceFacts } from '../package/source-facts.ts';
import { root } from '../support/folders.ts';
import { NO_WRITING, runNode } from '../support/program.ts';

/** Names with a meaning for a file system. Names of attachments have no dots. */
const PLAIN = ['/etc/passwd', '\\\\host\\share', 'C:\\x', 'con', 'NUL', 'aux', 'a/b', '~', '-rf', '%2e%2e%2f'];
const NAMES = [...PLAIN, 'x'.repeat(256), 'a\nb', '$(id)', '`id`'];

test('names of attachments and runs never become paths [security 10]', async () => {
  const program = join(root, 'test/security/programs/names.mjs');
  const { code, stdout, stderr } = await runNode([...NO_WRITING, program, JSON.stringify([...NAMES, '../../x', '.'])]);
  expect(stderr.split('\n').filter((line) => /^runspan:|Error/.test(line))).toEqual([
    expect.stringContaining('without a dot; the attachment was ignored'),
  ]);
  expect(JSON.parse(stdout)).toEqual(NAMES);
  expect(code).toBe(0);
});

test('only the spool, the store, the page, uploads, replays and the command access files [security 10]', () => {
  const files = filesUnder('src', '.ts').filter(
    (file) =>
      !/^(cli\/|clients\/control-plane\/upload\/source-|delivery\/(spool|process-end)|receiver\/(store\/sqlite\/|http\/page-)|replay\/)/.test(
        file,
      ),
  );
  const reaching = files.filter((file) =>
    sourceFacts(file, read(`src/${file}`)).imports.some(({ specifier }) =>
      /^(node:)?(fs|child_process|worker_threads)\b/.test(specifier),
    ),
  );
  expect(files.length).toBeGreaterThan(100);
  expect(reaching).toEqual([]);
});
