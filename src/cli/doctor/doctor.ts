import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { messageOf, visibleJson } from '../../base/text.ts';
import { isAtLeast, version } from '../../base/version.ts';
import type { Settings } from '../../config/options.ts';
import { destinationOf } from '../../delivery/create-exporter.ts';
import { destinationHash, FORMAT_FOLDER } from '../../delivery/spool/directory.ts';
import { makeFolders, removeFile, type SpoolFs, systemFs, writeNewFile } from '../../delivery/spool/fs.ts';
import { createClient } from '../../http/create-client.ts';
import { DELAY_MAX_MS } from '../../platform/timers.ts';
import type { CommandContext, Output } from '../command-line.ts';
import { type Finding, fail, findingLine, ok, warn, withoutSecrets } from './finding.ts';
import { packageFindings } from './packages.ts';
import { serviceFindings } from './service.ts';
import { secretsOfEnvironment, settingFindings } from './settings.ts';
import { runFindings } from './test-run.ts';

const HELP = `
Exit code:
  0 if no check fails, 1 if a check fails, 2 for invalid arguments`;

export function define(command: Command, { stdout, endAs }: CommandContext): void {
  command
    .description(
      'Checks the current environment and folder: Node, each setting and its source, the connection to the service, the clocks, and the installed packages. Then sends one run named "runspan doctor", and reads the run back if the service supports queries. Prints no secrets.',
    )
    .option('--json', 'print the findings as one JSON object')
    .addHelpText('after', HELP)
    .action(async ({ json }) => {
      if (!(await doctor(json === true, stdout))) endAs(1);
    });
}

async function doctor(isJson: boolean, stdout: Output): Promise<boolean> {
  const secrets = secretsOfEnvironment();
  const findings: Finding[] = [];
  const add = (found: Finding): void => {
    const finding = withoutSecrets(found, secrets);
    findings.push(finding);
    if (!isJson) stdout.write(`${findingLine(finding)}\n`);
  };
  // The HTTP client's sockets do not keep the process alive, so a timer does.
  const keepAlive = setInterval(() => {}, DELAY_MAX_MS);
  try {
    for await (const finding of allFindings()) add(finding);
  } catch (thrown) {
    add(fail('doctor', messageOf(thrown), 'this is a bug in runspan; please report the bug'));
  } finally {
    clearInterval(keepAlive);
  }
  const isHealthy = findings.every(({ level }) => level !== 'fail');
  if (isJson) stdout.write(`${visibleJson(JSON.stringify({ version, ok: isHealthy, findings }, undefined, 2))}\n`);
  return isHealthy;
}

/** Request timeout in milliseconds. The user of the command waits for the response. */
const RESPONSE_MAX_MS = 8_000;

async function* allFindings(): AsyncGenerator<Finding> {
  yield nodeFinding(process.versions.node);
  yield* packageFindings(process.cwd());
  const { findings, settings } = settingFindings();
  yield* findings;
  if (settings === undefined) return;
  if (settings.durability !== 'memory') yield spoolFinding(settings);
  const { connectTimeoutMs } = settings.limits;
  const requestTimeoutMs = Math.min(settings.limits.requestTimeoutMs, RESPONSE_MAX_MS);
  const client = createClient({ ...settings, connectTimeoutMs, requestTimeoutMs });
  try {
    for await (const finding of serviceFindings(settings, client)) {
      yield finding;
      if (finding.level === 'fail') return;
    }
    yield* runFindings(settings, client);
  } finally {
    await client.destroy();
  }
}

/** Minimum version of Node. Matches `engines` in package.json. */
const NODE_MIN = [20, 19] as const;

export function nodeFinding(running: string): Finding {
  const message = `v${running}, with runspan ${version}`;
  if (isAtLeast(running, NODE_MIN)) return ok('node', message);
  return fail('node', message, `install Node ${NODE_MIN.join('.')} or later`);
}

/** Size of the test file: one block on most file systems. A smaller file could fit on a full disk. */
const TEST_FILE_BYTES = 4_096;

/** Checks the spool folder by writing a test file. */
export function spoolFinding(settings: Settings, fs: SpoolFs = systemFs): Finding {
  const { spoolDir } = settings;
  const names = [FORMAT_FOLDER, destinationHash(destinationOf(settings))];
  try {
    makeFolders(fs, spoolDir, names);
    const path = join(spoolDir, ...names, `doctor-${randomUUID()}`);
    writeNewFile(fs, path, Buffer.alloc(TEST_FILE_BYTES));
    removeFile(fs, path);
    return ok('spool', `${spoolDir} can be written`);
  } catch (thrown) {
    const advice = 'set RUNSPAN_SPOOL_DIR to a writable folder; until then, runs are kept only in memory';
    return warn('spool', `${spoolDir} cannot be written: ${messageOf(thrown)}`, advice);
  }
}
