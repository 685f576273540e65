import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { ADVICE } from '#src/cli/init/advice.ts';
import { anchorsOf } from '../package/page-links.ts';
import { runMain } from '../support/command.ts';
import { root } from '../support/folders.ts';
import { testFolder } from '../support/test-folder.ts';

/** Creates a folder with these files. Values that are not text are written as JSON. */
function project(files: Readonly<Record<string, unknown>>): string {
  const texts = Object.entries(files).map(([name, content]) => {
    return [name, typeof content === 'string' ? content : JSON.stringify(content)];
  });
  return testFolder(Object.fromEntries(texts));
}

function init(folder: string, ...args: string[]) {
  vi.spyOn(process, 'cwd').mockReturnValue(folder);
  return runMain(['init', ...args]);
}

const filesIn = (folder: string) =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]));

const DOCS = 'https://github.com/runspan/runspan/blob/main/docs';

describe('runspan init', () => {
  it('prints what it found in package.json and what to add, and writes nothing', async () => {
    const folder = project({
      'package.json': {
        name: '@acme/shop',
        scripts: { dev: 'next dev', start: 'next start' },
        dependencies: { next: '^16.0.0', ai: '^6.0.0', left: '1' },
        devDependencies: { typescript: '^5' },
      },
      'pnpm-lock.yaml': '',
    });
    const before = filesIn(folder);
    expect(await init(folder)).toEqual({
      code: 0,
      stderr: '',
      stdout: `Found in package.json:
  TypeScript, ES modules, pnpm
  next ^16.0.0
  ai ^6.0.0

Install:
  pnpm add runspan

Environment variables to set when the program starts:
  RUNSPAN_ENDPOINT=http://127.0.0.1:4777
  RUNSPAN_API_KEY=
  RUNSPAN_PROJECT=@acme/shop
  Without these variables, nothing is recorded. \`runspan dev\` needs none.
  Next.js reads the variables from .env.
  ${DOCS}/configuration.md

Scripts in package.json:
  "dev:trace": "runspan dev -- pnpm run dev"

Start the program with runspan:
  npx runspan dev -- pnpm run dev
  ${DOCS}/register.md

next: record the model calls, and deliver the runs on Vercel
  // instrumentation.ts
  export async function register() {
    if (process.env.NEXT_RUNTIME === 'nodejs') await import('runspan/register');
  }
  // next.config, in the exported object: keep the packages out of the bundle
  serverExternalPackages: ['ai'],
  // each route handler: withFlush delivers its runs on Vercel
  import { withFlush } from 'runspan';
  export const POST = withFlush(handle);
  ${DOCS}/nextjs.md

ai: only needed before Node 22.15 or in a bundle, with a version before 7
  import * as ai from 'ai';
  import { wrapAISDK } from 'runspan/ai';
  const { generateText, streamText } = wrapAISDK(ai);
  ${DOCS}/ai-sdk.md

With --write, this command adds:
  .env.example: RUNSPAN_ENDPOINT, RUNSPAN_API_KEY, RUNSPAN_PROJECT
  package.json: dev:trace
  instrumentation.ts: register

`,
    });
    expect(filesIn(folder)).toEqual(before);
  });

  it('with --agents, prints an entry for each coding agent, and a skill whose commands exist', async () => {
    const { stdout } = await init(project({ 'package.json': {} }), '--agents');
    const server = { runspan: { command: 'npx', args: ['runspan', 'mcp'] } };
    const entries = stdout.match(/^ {2}\{ "\w+": \{$[\s\S]*?^ {2}\} \}$/gm)?.map((json) => JSON.parse(json));
    expect(entries).toEqual([{ mcpServers: server }, { servers: server }]);
    expect(stdout).toContain('\n  [mcp_servers.runspan]\n  command = "npx"\n  args = ["runspan", "mcp"]\n');
    const commands = [...stdout.matchAll(/- `npx runspan (\w+)([^`<]*).*`/g)];
    expect(commands.map(([, name]) => name)).toEqual(['traces', 'show', 'show']);
    for (const [, name = '', rest = ''] of commands) {
      const { code } = await runMain([name, ...rest.split(' ').filter(Boolean), '--store', '/none/runs.db']);
      expect(code).toBe(1);
    }
  });

  it('prints lines of CommonJS for a JavaScript program that is no ES module', async () => {
    const dependencies = { ai: '6', '@types/aws-lambda': '8', runspan: '0.1.0' };
    const { stdout } = await init(project({ 'package.json': { dependencies } }));
    expect(stdout).toContain("\n  const ai = require('ai');\n  const { wrapAISDK } = require('runspan/ai');\n");
    expect(stdout).toContain("\n  require('runspan/register');\n  const { withFlush } = require('runspan');\n");
    expect(stdout).toContain('\n  exports.handler = withFlush(handle);\n');
    expect(stdout).not.toContain('Install:');
  });

  it('keeps the variables of a program that uses LangSmith', async () => {
    const { stdout } = await init(project({ 'package.json': { name: 'shop', dependencies: { langsmith: '1' } } }));
    expect(stdout).toContain('  LANGSMITH_TRACING=true\n  LANGSMITH_API_KEY=\n  LANGSMITH_PROJECT=shop\n');
    expect(stdout).not.toContain('RUNSPAN_');
  });

  it.each<[string, Record<string, string>, string, string]>([
    ['npm', {}, 'npm install runspan', 'npm run dev'],
    ['npm', { 'package-lock.json': '' }, 'npm install runspan', 'npm run dev'],
    ['yarn', { 'yarn.lock': '' }, 'yarn add runspan', 'yarn run dev'],
    ['bun', { 'bun.lock': '' }, 'bun add runspan', 'bun run dev'],
    ['pnpm', { '../pnpm-lock.yaml': '' }, 'pnpm add runspan', 'pnpm run dev'],
    [
      'yarn',
      { 'package-lock.json': '', 'package.json': '{"scripts":{"dev":"x"},"packageManager":"yarn@4.1.0"}' },
      'yarn add runspan',
      'yarn run dev',
    ],
  ])('uses %s if the files are %j', async (_, files, install, run) => {
    const folder = project({ 'a/package.json': { scripts: { dev: 'x' } } });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, 'a', name), text);
    const { stdout } = await init(join(folder, 'a'));
    expect(stdout).toContain(`\n  ${install}\n`);
    expect(stdout).toContain(`"dev:trace": "runspan dev -- ${run}"`);
  });

  it('prints the packages of Next.js to keep out of the bundle as docs/nextjs.md does, and only those found', async () => {
    const printed = async (dependencies: Record<string, string>) =>
      (await init(project({ 'package.json': { dependencies: { next: '15', ...dependencies } } }))).stdout;
    const [external = ''] =
      /serverExternalPackages: \[.*\]/.exec(readFileSync(join(root, 'docs/nextjs.md'), 'utf8')) ?? [];
    expect(await printed({ ai: '6', '@langchain/core': '1' })).toContain(`\n  ${external},\n`);
    expect(await printed({ ai: '^7.0.1', '@langchain/core': '1' })).toContain(
      "\n  serverExternalPackages: ['@langchain/core'],\n",
    );
    expect(await printed({ ai: '7' })).not.toContain('next.config');
    expect(await printed({})).not.toContain('next.config');
  });

  it.each([
    ['^14.2.0', true],
    ['15.0.0', false],
    ['latest', false],
  ])('warns about version %s of Next.js: %s', async (next, warns) => {
    const { stdout } = await init(project({ 'package.json': { dependencies: { next } } }));
    expect(stdout.includes('\n  Warning: runspan requires Next.js 15 or later\n')).toBe(warns);
  });

  it('names the instrumentation file that --write creates in a JavaScript project', async () => {
    const folder = project({ 'package.json': { dependencies: { next: '16' } }, 'src/app/page.js': '' });
    const { stdout } = await init(folder, '--write');
    expect(stdout).toContain('\n  // src/instrumentation.js\n');
    expect(readdirSync(join(folder, 'src'))).toEqual(['app', 'instrumentation.js']);
  });

  it.each([
    [
      { start: 'tsx app.ts' },
      {},
      ['runspan dev -- npm run start', 'tsx --env-file=.env --import runspan/register app.ts'],
    ],
    [{ dev: 'wrangler dev' }, { wrangler: '4' }, ['runspan dev -- npm run dev']],
  ])('prints the commands of the scripts %j with npx', async (scripts, dependencies, commands) => {
    const { stdout } = await init(project({ 'package.json': { scripts, dependencies } }));
    const lines = commands.map((command) => `  npx ${command}\n`).join('');
    expect(stdout).toContain(`\nStart the program with runspan:\n${lines}  ${DOCS}/register.md\n`);
  });

  it('prints an example of the commands if there is no script, except for a platform that starts the program', async () => {
    const [plain, lambda] = [
      await init(project({ 'package.json': {} })),
      await init(project({ 'package.json': { dependencies: { sst: '3' } } })),
    ];
    expect(plain.stdout).toContain(
      '\n  npx runspan dev -- node app.js\n  node --env-file=.env --import runspan/register app.js\n',
    );
    expect(lambda.stdout).not.toContain('Start the program');
  });

  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['index.js', { main: 'index.js' }, { 'index.js': '' }],
    ['lib/start.cjs', { main: './lib/start.cjs', module: 'index.js' }, { 'lib/start.cjs': '', 'index.js': '' }],
    ['start.mjs', { main: 'missing.js', exports: './start.mjs', module: 'x.js' }, { 'start.mjs': '', 'x.js': '' }],
    ['x.js', { exports: { '.': './y.js' }, module: 'x.js' }, { 'x.js': '', 'y.js': '' }],
    ['index.js', {}, { 'index.js': '' }],
    ['app.js', { main: 'missing.js' }, {}],
    ['app.js', { main: 'index.ts' }, { 'index.ts': '' }],
    ['app.js', { main: 'a b.js', module: 'a;b.js' }, { 'a b.js': '', 'a;b.js': '' }],
    ['app.js', { main: 'lib.js' }, { 'lib.js/index.js': '' }],
  ])('names the file %s if package.json has %j', async (file, manifest, files) => {
    const { stdout } = await init(project({ 'package.json': manifest, ...files }));
    const commands = [`npx runspan dev -- node ${file}`, `node --env-file=.env --import runspan/register ${file}`];
    expect(stdout).toContain(`\nStart the program with runspan:\n  ${commands.join('\n  ')}\n`);
  });

  it.each([
    ['node app.js', 'node --env-file=.env --import runspan/register app.js'],
    ['A=b node -r x app.js', 'A=b node --env-file=.env --import runspan/register -r x app.js'],
    ['cross-env A=1 tsx app.ts', 'cross-env A=1 tsx --env-file=.env --import runspan/register app.ts'],
    ['node --env-file=a app.js', 'node --import runspan/register --env-file=a app.js'],
    ['tsx watch app.ts', undefined],
    ['nodemon app.js', undefined],
    ['npm run build && node app.js', undefined],
  ])('derives from the script "%s" the script "%s"', async (start, traced) => {
    const { stdout } = await init(project({ 'package.json': { scripts: { start } } }));
    const line = `\n  "start:trace": ${JSON.stringify(traced)}\n`;
    if (traced === undefined) expect(stdout).not.toContain('start:trace');
    else expect(stdout).toContain(line);
    expect(stdout).toContain('\n  "dev:trace": "runspan dev -- npm run start"\n');
  });

  it.each([
    [{}, /there is no \S+package\.json: change to the folder of your program/],
    [{ 'package.json': '{"name":}' }, /\S+package\.json is not valid JSON/],
    [{ 'package.json': '[]' }, /expected \S+package\.json to be a JSON object/],
    [{ 'package.json': { scripts: [] } }, /expected "scripts" in \S+package\.json to be an object/],
  ])('exits with 2 and names the file if package.json is missing or invalid: %j', async (files, message) => {
    const folder = project(files);
    const { code, stdout, stderr } = await init(folder, '--write');
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message);
    expect(Object.keys(filesIn(folder))).toEqual(Object.keys(files));
  });
});

describe('runspan init --write', () => {
  it('adds variables, scripts and instrumentation.ts, and a second time nothing', async () => {
    const folder = project({
      'package.json':
        '{\r\n\t"scripts": {\r\n\t\t"dev": "next dev"\r\n\t},\r\n\t"dependencies": { "next": "16" }\r\n}\r\n',
      'tsconfig.json': '{}',
    });
    const { code, stdout } = await init(folder, '--write');
    expect(code).toBe(0);
    expect(stdout).toMatch(/\nAdded:\n {2}.env.example: RUNSPAN_ENDPOINT, .*\n {2}package.json: dev:trace\n/);
    const written = filesIn(folder);
    expect(readFileSync(join(root, 'docs/nextjs.md'), 'utf8')).toContain(written['instrumentation.ts']);
    expect(written).toEqual({
      '.env.example': 'RUNSPAN_ENDPOINT=http://127.0.0.1:4777\nRUNSPAN_API_KEY=\nRUNSPAN_PROJECT=default\n',
      'instrumentation.ts': `export async function register() {
  if (process.env.NEXT_RUNTIME === 'nodejs') await import('runspan/register');
}
`,
      'package.json': [
        '{\r\n\t"scripts": {\r\n\t\t"dev": "next dev",\r\n\t\t"dev:trace": "runspan dev -- npm run dev"\r\n\t},',
        '\t"dependencies": {\r\n\t\t"next": "16"\r\n\t}\r\n}\r\n',
      ].join('\r\n'),
      'tsconfig.json': '{}',
    });
    const again = await init(folder, '--write');
    expect(again.stdout).not.toContain('Added:');
    expect(again.stdout).toContain('Already there, not changed:\n  .env.example: RUNSPAN_ENDPOINT,');
    expect(filesIn(folder)).toEqual(written);
  });

  it('changes no existing variable, script or file, and lists them', async () => {
    const folder = project({
      'package.json': { name: 'shop', scripts: { dev: 'x', 'dev:trace': 'mine' }, dependencies: { next: '16' } },
      '.env.example': 'A=1\n# RUNSPAN_API_KEY=mine',
      'src/app/page.js': '',
      'src/instrumentation.js': 'mine',
    });
    const { stdout } = await init(folder, '--write');
    expect(stdout.slice(stdout.indexOf('Added:'))).toBe(`Added:
  .env.example: RUNSPAN_ENDPOINT, RUNSPAN_PROJECT

Already there, not changed:
  .env.example: RUNSPAN_API_KEY
  package.json: dev:trace
  src/instrumentation.js: register

`);
    expect(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).scripts['dev:trace']).toBe('mine');
    expect(readFileSync(join(folder, 'src/instrumentation.js'), 'utf8')).toBe('mine');
    expect(readFileSync(join(folder, '.env.example'), 'utf8')).toBe(
      'A=1\n# RUNSPAN_API_KEY=mine\nRUNSPAN_ENDPOINT=http://127.0.0.1:4777\nRUNSPAN_PROJECT=shop\n',
    );
  });
});

it.each(Object.entries(ADVICE))(
  'the advice for %s fits in 80 columns, and its page and imports exist',
  async (packages, text) => {
    for (const name of packages.split(' ')) {
      const { stdout } = await init(project({ 'package.json': { type: 'module', dependencies: { [name]: '1.2.3' } } }));
      expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
      expect(stdout).toContain(`\n${name}: ${text.split('\n')[0]}\n`);
    }
    const [page = '', anchor] = /docs\/.*$/.exec(text)?.[0].split('#') ?? [];
    expect([undefined, ...anchorsOf(readFileSync(join(root, page), 'utf8'))]).toContain(anchor);
    for (const [, names = '', entry = 'runspan'] of text.matchAll(/^import \{ (.+) \} from 'runspan(?:\/(.+))?';$/gm)) {
      const reference = readFileSync(join(root, `docs/reference/${entry}.md`), 'utf8');
      for (const name of names.split(', ')) expect(reference).toContain(`\n### ${name}\n`);
    }
  },
);
