import { randomBytes } from 'node:crypto';
import { readdirSync, readlinkSync, rmSync } from 'node:fs';
import { chmod, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { type TarHeader, unpackTar } from 'modern-tar';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type SourceArchive, sourceArchive } from '#src/clients/control-plane/upload/source-archive.ts';
import { sourceFiles } from '#src/clients/control-plane/upload/source-files.ts';
import { testFolder } from '../support/test-folder.ts';

const CALL = 'deployments.uploadSource';

async function headersOf(path: string): Promise<TarHeader[]> {
  const entries = await unpackTar(gunzipSync(await readFile(path)));
  return entries.map(({ header }) => header);
}

async function archived(root: string, bytesMax?: number): Promise<SourceArchive> {
  const archive = await sourceArchive(CALL, root, undefined, bytesMax);
  onTestFinished(() => archive.remove());
  return archive;
}

/** A directory whose archive has many chunks: forty files that do not compress, the last of which is `39`. */
async function bulky(): Promise<string> {
  const root = testFolder({});
  for (let index = 0; index < 40; index++)
    await writeFile(join(root, String(index).padStart(2, '0')), randomBytes(200_000));
  return root;
}

/** Returns the target of a link, or an empty text if the link does not exist. */
function targetOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

async function message(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => expect.unreachable('it resolved'),
    (thrown: Error & { code?: string }) => `${thrown.code} ${thrown.message}`,
  );
}

it.each<[string | URL, string]>([
  ['nowhere/to be found', 'nowhere/to be found does not exist'],
  [new URL('file:///nowhere/at%20all'), '/nowhere/at all does not exist'],
  [new URL('http://a.example/x'), 'Expected a path, or a URL that starts with file:'],
  [undefined as unknown as string, 'Expected a path, or a URL that starts with file:'],
])('the source %s is refused: %s', async (given, said) => {
  expect(await message(sourceArchive(CALL, given, undefined))).toBe(`RUNSPAN_INVALID_REQUEST ${CALL}: source: ${said}`);
});

/** Sets a folder for temporary files and returns a function that lists its files. */
async function temporary(): Promise<() => string[]> {
  const folder = testFolder({});
  const { TMPDIR } = process.env;
  process.env.TMPDIR = folder;
  onTestFinished(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });
  return () => readdirSync(folder);
}

describe('the files of a source', () => {
  it.each<[title: string, ignored: Record<string, string>, given: string, expected: string]>([
    [
      'are all files but folders that the build creates',
      {},
      'b.ts a/c.ts .env .git/HEAD node_modules/x/i.js a/node_modules/y.js',
      '.env a/c.ts b.ts',
    ],
    [
      'exclude files in .gitignore',
      { '.gitignore': 'dist/\n*.log\n!keep.log\n/only\n' },
      'dist/a.js a.log b/keep.log only b/only',
      'b/keep.log b/only',
    ],
    [
      'follow the nearest .gitignore',
      { '.gitignore': '*.bin\nbuild/\n', 'a/.gitignore': '!*.bin\nsecret.txt\n!build/\n' },
      'a.bin a/a.bin a/secret.txt a/build/x.js build/y.js b/secret.txt',
      'a/a.bin a/build/x.js b/secret.txt',
    ],
    ['are matched case-sensitively', { '.gitignore': 'Data\n', '.dockerignore': 'Logs\n' }, 'data logs', 'data logs'],
    [
      'exclude files in .dockerignore, whose patterns start at the root',
      { '.dockerignore': '# no\ndata\n/x.md\n**/*.tmp\n./y.md\n' },
      'data/1 src/data/1 x.md src/x.md src/a.tmp y.md',
      'src/data/1 src/x.md',
    ],
    [
      'include files again within a directory that .dockerignore excludes',
      { '.dockerignore': '*\n!src\n!docs/keep.md\nsrc/x\n' },
      'a.ts src/a.ts src/x/b.ts docs/keep.md docs/b.md',
      'docs/keep.md src/a.ts',
    ],
  ])('%s', async (_, ignored, given, expected) => {
    const files = Object.fromEntries(given.split(' ').map((path) => [path, '']));
    const { paths } = await sourceFiles(testFolder({ ...files, ...ignored }), undefined);
    expect(paths.filter((path) => !path.endsWith('ignore'))).toEqual(expected.split(' '));
  });

  it('include links within the directory, and refuse links that lead out', async () => {
    const root = testFolder({ 'a/b.ts': '', 'c.ts': '' });
    await symlink('../c.ts', join(root, 'a/inside'));
    await symlink('a', join(root, 'folder'));
    await symlink('nowhere', join(root, 'dangling'));
    expect((await sourceFiles(root, undefined)).paths).toEqual(['a/b.ts', 'a/inside', 'c.ts', 'dangling', 'folder']);
    await symlink('../../etc/passwd', join(root, 'a/out'));
    await symlink(join(root, 'c.ts'), join(root, 'whole'));
    await symlink('..', join(root, 'up'));
    const refused = await message(sourceArchive(CALL, root, undefined));
    expect(refused).toMatch(/^RUNSPAN_INVALID_REQUEST /);
    for (const path of ['a/out', 'whole', 'up'])
      expect(refused).toContain(`source.${path}: The link leads outside the directory`);
    await writeFile(join(root, '.gitignore'), 'out\nwhole\nup\n');
    expect((await sourceFiles(root, undefined)).errors).toEqual([]);
  });
});

describe('the archive of a directory', () => {
  it('has the same bytes for the same files', async () => {
    const files = { 'b.ts': 'b', 'a/@c.ts': 'c', '@d.ts': 'd', '.gitignore': 'x' };
    const [one, other] = [testFolder(files), testFolder(Object.fromEntries(Object.entries(files).reverse()))];
    await utimes(join(other, 'b.ts'), 1, 1);
    const [first, second] = [await archived(one), await archived(other)];
    expect(await readFile(first.path)).toEqual(await readFile(second.path));
    expect((await readFile(first.path)).length).toBe(first.bytes);
    const headers = await headersOf(first.path);
    expect(headers.map(({ name, size, mtime, uid }) => `${name} ${size} ${mtime?.toISOString()} ${uid}`)).toEqual(
      ['.gitignore', '@d.ts', 'a/@c.ts', 'b.ts'].map((path) => `${path} 1 1985-10-26T08:15:00.000Z 0`),
    );
  });

  it('keeps long names, links and executable files, and only its owner can read it', async () => {
    const long = `${'folder-with-a-long-name/'.repeat(12)}${'f'.repeat(120)}.ts`;
    const root = testFolder({ 'run.sh': '#!', [long]: 'long' });
    await chmod(join(root, 'run.sh'), 0o777);
    await chmod(join(root, long), 0o444);
    await symlink('run.sh', join(root, 'start'));
    const { path } = await archived(root);
    const headers = await headersOf(path);
    expect(headers.map(({ name, type, linkname, mode = 0 }) => [name, type, linkname ?? '', mode & 0o777])).toEqual([
      [long, 'file', '', 0o644],
      ['run.sh', 'file', '', 0o755],
      ['start', 'symlink', 'run.sh', expect.any(Number)],
    ]);
    expect((await stat(path)).mode & 0o077).toBe(0);
  });

  it('is refused above the size limit before anything is sent', async () => {
    const root = testFolder({ 'a.txt': 'a' });
    const { bytes } = await archived(root);
    expect((await archived(root, bytes)).bytes).toBe(bytes);
    const leftBehind = await temporary();
    expect(await message(sourceArchive(CALL, root, undefined, bytes - 1))).toContain('The archive is larger than');
    expect(leftBehind()).toEqual([]);
  });

  it('is refused if it is empty', async () => {
    const root = testFolder({ '.gitignore': '*' });
    expect(await message(sourceArchive(CALL, root, undefined))).toContain('all files are ignored');
  });

  it('rejects if a file disappears while the archive is packed', async () => {
    const root = await bulky();
    const signal = new AbortController().signal;
    // The signal is read once for the directory, then with each chunk.
    const asked = vi
      .spyOn(signal, 'throwIfAborted')
      .mockImplementation(() => rmSync(join(root, '39'), { force: true }));
    asked.mockImplementationOnce(() => undefined);
    expect(await message(sourceArchive(CALL, root, signal))).toMatch(/^ENOENT .*39/);
  });

  it.runIf(process.platform === 'linux')('leaves no file open if it is refused', async () => {
    const root = await bulky();
    const open = () => readdirSync('/proc/self/fd').map((name) => targetOf(`/proc/self/fd/${name}`));
    expect(await message(sourceArchive(CALL, root, undefined, 1_000))).toContain('The archive is larger than');
    await expect.poll(() => open().filter((path) => path.startsWith(root))).toEqual([]);
  });

  it('ends with the signal and leaves no files', async () => {
    const root = testFolder({ 'a.txt': 'a' });
    const leftBehind = await temporary();
    const reason = new Error('enough');
    await expect(sourceArchive(CALL, root, AbortSignal.abort(reason))).rejects.toBe(reason);
    const archive = await sourceArchive(CALL, root, undefined);
    expect(leftBehind()).toHaveLength(1);
    await archive.remove();
    expect(leftBehind()).toEqual([]);
  });
});

describe('a tarball', () => {
  it('is sent unchanged, up to the size limit', async () => {
    const root = testFolder({});
    const path = join(root, 'source.tar.gz');
    const bytes = gzipSync('anything');
    await writeFile(path, bytes);
    for (const given of [path, pathToFileURL(path)]) {
      const archive = await sourceArchive(CALL, given, undefined, bytes.length);
      expect(archive).toMatchObject({ path, bytes: bytes.length });
      await archive.remove();
      expect(await readFile(path)).toEqual(bytes);
    }
    const tooLarge = sourceArchive(CALL, path, undefined, bytes.length - 1);
    expect(await message(tooLarge)).toMatch(
      /^RUNSPAN_INVALID_REQUEST deployments.uploadSource: source: The archive is larger/,
    );
  });

  it('is refused if it is not gzip', async () => {
    const root = testFolder({ 'a.tar': 'text', empty: '' });
    for (const name of ['a.tar', 'empty']) {
      expect(await message(sourceArchive(CALL, join(root, name), undefined))).toContain('compressed with gzip');
    }
    const gone = join(root, 'gone');
    expect(await message(sourceArchive(CALL, gone, undefined))).toContain(gone);
  });
});
