import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createReceiver, type Receiver } from '#src/receiver.ts';
import { importedBy, installedAbove } from '../package/installs.ts';
import { guides, read } from '../package/repository.ts';
import { commandsOf, masked, type Snippet, snippetsOf } from '../package/snippets.ts';
import { root } from '../support/folders.ts';
import { type LocalModel, startLocalModel } from '../support/local-model/server.js';
import { startProgram } from '../support/program.ts';
import { asInstalled, isInstalled, packagesFor } from './application.ts';
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

const inFolders = snippets
  .filter(({ folder }) => folder !== undefined)
  .map((snippet) => [snippet.place, snippet] as const);

it.each(inFolders)('%s prints what the page shows for an example', async (_, { code, folder = '', prints = '' }) => {
  const [, subcommand = '', ...args] = commandsOf(code).join(' ').replace('npx ', '').split(' ');
  const command = [laterNode(), join(root, 'dist/cli/main.js'), subcommand, '--memory', '--port', '0', ...args];
  const path = [dirname(laterNode()), process.env.PATH].join(delimiter);
  const { stdout, stderr } = await startProgram(command, { PATH: path }, join(root, folder)).ended;
  expect(stderr).toBe('');
  expect(masked(stdout)).toEqual(masked(prints));
});

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
