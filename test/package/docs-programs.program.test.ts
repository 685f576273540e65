import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createReceiver, type Receiver } from '#src/receiver.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { runNode } from '../support/program.ts';
import { fileOf, folderOf, layOutPrograms, programs, shells } from './documentation.ts';
import { manifest, read } from './repository.ts';
import { commandsOf, masked, type Snippet } from './snippets.ts';

const folder = temporaryFolder();
beforeAll(() => layOutPrograms(folder.path));
afterAll(folder.remove);

const printing = shells.filter(({ prints }) => prints !== undefined);
const places = new Set([...programs, ...printing].map(folderOf));

// The snippets of a page run in order, because they share a folder. Each page has a receiver.
describe.concurrent.each([...places])('of the page %s, the snippet', (page) => {
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await createReceiver();
  });
  afterAll(() => receiver.close());
  const ofPage = (snippets: readonly Snippet[]) =>
    snippets.filter((snippet) => folderOf(snippet) === page).map((snippet) => [snippet.place, snippet] as const);

  it.sequential.each(ofPage(programs))('%s runs', async (_, program) => {
    const path = fileOf(program);
    const output = await run([...platformFor(page), path.base], join(folder.path, path.dir), receiver.url);
    if (program.prints !== undefined) expect(masked(output)).toEqual(masked(program.prints));
  });

  it.sequential.each(ofPage(printing))('%s prints what the page shows', async (_, shell) => {
    let output = '';
    for (const command of commandsOf(shell.code)) {
      output += await run(argumentsOf(command), join(folder.path, page), receiver.url);
    }
    expect(masked(output)).toEqual(masked(shell.prints ?? ''));
  });
});

/** Returns the arguments for Node that run a program of a page against a platform, if the page says so. */
function platformFor(page: string): string[] {
  if (!read(`${page}.md`).includes('npx runspan dev --platform -- node ')) return [];
  return [...argumentsOf('npx runspan dev --platform'), '--', process.execPath];
}

function argumentsOf(command: string): string[] {
  const [program, ...rest] = command.split(/\s+/);
  if (program === 'node') return rest;
  if (program !== 'npx' || rest[0] !== 'runspan') throw new Error(`a test cannot run: ${command}`);
  const [, subcommand = '', ...options] = rest;
  // The default port may be in use.
  const port = subcommand === 'dev' && !options.includes('--port') ? ['--port', '0'] : [];
  return [join(root, manifest.bin.runspan ?? ''), subcommand, ...port, ...options];
}

/** Returns the standard output of a program. Throws if the program fails or runspan logs a line. */
async function run(args: readonly string[], cwd: string, endpoint: string): Promise<string> {
  const { code, signal, stdout, stderr } = await runNode(args, { RUNSPAN_ENDPOINT: endpoint }, cwd);
  if (code === 0 && !/^runspan: /m.test(stderr)) return stdout;
  throw new Error(`${args.join(' ')} ended with ${code ?? signal}:\n${stderr}${stdout}`);
}
