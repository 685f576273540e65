import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createReceiver, type Receiver } from '#src/receiver.ts';
import { importedBy, installedAbove } from '../package/installs.ts';
import { guides, read } from '../package/repository.ts';
import { abridged, commandsOf, masked, type Snippet, snippetsOf } from '../package/snippets.ts';
import { root } from '../support/folders.ts';
import { type LocalModel, startLocalModel } from '../support/local-model/server.js';
import { startProgram } from '../support/program.ts';
import { asInstalled, isInstalled, packagesFor } from './application.ts';
import { projectWith } from './guides.ts';
import { laterNode } from './later-node.ts';

// Other tests run those of the chat and of Langfuse, and blocks with a file name.
const pages = ['README.md', ...guides].filter(
  (page) => !page.startsWith('docs/chat') && page !== 'docs/from-langfuse.md',
);
const snippets = pages.flatMap((page) => snippetsOf(page, read(page)));
const programs = snippets.filter(({ code, file, isOfPeers, language, notRun }) => {
  const isProgram = /^[jt]s$/.test(language) && file === undefined && notRun === undefined;
  return isProgram && (isOfPeers || importedBy(code).length > 0);
});

const withVersions = programs.map((program) => [program.place, program, packagesFor(program)] as const);

/** Versions of OpenTelemetry's packages that belong to SDK 2, by those that belong to SDK 3. */
const SDK_2: Readonly<Record<string, string>> = { '0.301': '0.223', '0.22': '0.21', '3': '2', '1': '1.9' };

const withSdk2 = withVersions
  .filter(([, { code }]) => code.includes("'@opentelemetry/sdk-"))
  .map(([place, program, packages]) => {
    const earlier = [...packages].map(([name, version]) => {
      return [name, name.startsWith('@opentelemetry/') ? (SDK_2[version] ?? version) : version] as const;
    });
    return [place, program, new Map(earlier)] as const;
  });

describe('the snippet that needs packages of others', () => {
  let receiver: Receiver;
  let model: LocalModel;
  const collector = createServer((request, response) => void request.resume().on('end', () => response.end('{}')));

  beforeAll(async () => {
    receiver = await createReceiver({ port: 0 });
    model = await startLocalModel();
    await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  });

  afterAll(async () => {
    collector.close();
    await model?.close();
    await receiver?.close();
  });

  const run = async (program: Snippet, packages: ReadonlyMap<string, string>): Promise<void> => {
    const { port } = collector.address() as AddressInfo;
    const path = asInstalled(program.code, packages);
    const { code, stdout, stderr } = await startProgram([laterNode(), path], {
      RUNSPAN_ENDPOINT: receiver.url,
      SENTRY_DSN: `http://key@127.0.0.1:${port}/1`,
      OPENAI_BASE_URL: `${model.url}/v1`,
      OPENAI_API_KEY: 'local',
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      TRACELOOP_TELEMETRY: 'false',
    }).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    if (program.prints !== undefined) expect(masked(stdout)).toEqual(masked(program.prints));
  };

  it.each(withVersions)('%s runs with the packages that its page installs', (_, program, packages) =>
    run(program, packages),
  );

  it.each(withSdk2)('%s runs with SDK 2 of OpenTelemetry', (_, program, packages) => run(program, packages));
});

const inFolders = snippets.filter(({ folder }) => folder !== undefined);

it.each([...new Set(inFolders.map(({ folder = '' }) => folder))])(
  'each command in %s prints what the page shows',
  async (folder) => {
    const names = readdirSync(join(root, folder)).filter((name) => name.endsWith('.js'));
    const files = names.map((file) => ({ file, code: read(`${folder}/${file}`) }));
    const manifest = { file: 'package.json', code: '{ "type": "module" }\n' };
    const project = projectWith([...files, manifest], join(root, folder));
    const path = [dirname(laterNode()), process.env.PATH].join(delimiter);
    const env = { PATH: path, RUNSPAN_STORE: join(project, 'runs.db') };
    for (const { code, prints = '', fails } of inFolders.filter((one) => one.folder === folder)) {
      const ended = [];
      for (const command of commandsOf(code)) ended.push(await startProgram(argumentsOf(command), env, project).ended);
      const shown = masked(prints);
      expect(abridged(ended.map(({ stdout }) => stdout).join(''), shown)).toEqual(shown);
      expect(ended.map(({ stderr }) => stderr).join('')).toBe('');
      expect(ended.map((one) => one.code)).toEqual(ended.map((_, at) => (fails && at === ended.length - 1 ? 1 : 0)));
    }
  },
);

/** Returns a command without `npx`, and with a free port, because the default port may be in use. */
function argumentsOf(command: string): string[] {
  const [program = '', , ...args] = command.replace(/^(npx runspan dev)/, '$1 --port 0').split(' ');
  if (program === 'npx') return [laterNode(), join(root, 'dist/cli/main.js'), ...args];
  return command.split(' ');
}

it('each version that a guide installs is a version that is tested', () => {
  const peers = join(root, 'test/peers');
  const folders = [root, ...readdirSync(peers).map((name) => join(peers, name))];
  const untested = guides.flatMap((page) =>
    [...installedAbove(read(page))]
      .filter(([name]) => name !== 'runspan')
      .filter(([name, version]) => !folders.some((one) => isInstalled(join(one, 'node_modules'), name, version)))
      .map((installed) => `${page}: ${installed.join('@')}`),
  );
  expect(untested).toEqual([]);
});
