import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { version } from '../base/env.ts';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { messageOf, visibleJson } from '../base/text.ts';
import { destinationOf } from '../export/create-exporter.ts';
import type { Settings } from '../export/settings.ts';
import { SegmentFile } from '../export/spool-file.ts';
import { destinationHash, FORMAT_FOLDER, makePrivateFolders } from '../export/spool-folder.ts';
import { removeFile, type SpoolFs, systemFs } from '../export/spool-fs.ts';
import { HttpClient } from '../http/client.ts';
import type { Invocation } from './arguments.ts';
import { packageFindings } from './doctor-packages.ts';
import { runFindings } from './doctor-run.ts';
import { keyFinding, serviceFindings } from './doctor-service.ts';
import { secretsOfEnvironment, settingFindings } from './doctor-settings.ts';
import { cleared, type Finding, fail, findingLine, ok, warn } from './finding.ts';

/** `engines` of package.json. */
const NODE_MIN = [20, 19] as const;

/** A block of most file systems: what is smaller may find room on a disk that is full. */
const TRIED_BYTES = 4_096;

/**
 * Checks what tracing needs, and prints each finding as it comes, or all of them as JSON. The answer is the exit code: 0
 * unless something has failed. Never rejects.
 */
export async function doctor({ isJson }: Extract<Invocation, { kind: 'doctor' }>): Promise<0 | 1> {
  const secrets = secretsOfEnvironment();
  const findings: Finding[] = [];
  const take = (found: Finding): void => {
    const finding = cleared(found, secrets);
    findings.push(finding);
    if (!isJson) process.stdout.write(`${findingLine(finding)}\n`);
  };
  // Our own sockets do not hold a process: without this it would end while it waits for an answer.
  const holding = setInterval(() => {}, DELAY_MAX_MS);
  try {
    for await (const finding of allFindings()) take(finding);
  } catch (thrown) {
    take(fail('doctor', messageOf(thrown), 'this is a mistake of ours; please report it'));
  } finally {
    clearInterval(holding);
  }
  const isWell = findings.every(({ level }) => level !== 'fail');
  if (isJson) process.stdout.write(`${visibleJson(JSON.stringify({ version, ok: isWell, findings }, undefined, 2))}\n`);
  return isWell ? 0 : 1;
}

async function* allFindings(): AsyncGenerator<Finding> {
  yield nodeFinding(process.versions.node);
  yield* packageFindings(process.cwd());
  const { findings, settings } = settingFindings();
  yield* findings;
  if (settings === undefined) return;
  const spool = spoolFinding(settings);
  if (spool !== undefined) yield spool;
  const { connectTimeoutMs, requestTimeoutMs } = settings.limits;
  const client = new HttpClient({ ...settings, connectTimeoutMs, requestTimeoutMs });
  try {
    let isReachable = true;
    for await (const finding of serviceFindings(settings, client)) {
      if (finding.level === 'fail') isReachable = false;
      yield finding;
    }
    if (!isReachable) return;
    yield await keyFinding(settings, client);
    yield* runFindings(settings, client);
  } finally {
    await client.destroy();
  }
}

export function nodeFinding(running: string): Finding {
  const [major = 0, minor = 0] = running.split('.').map(Number);
  const [majorMin, minorMin] = NODE_MIN;
  const isNew = major > majorMin || (major === majorMin && minor >= minorMin);
  const told = `v${running}, with runspan ${version}`;
  return isNew ? ok('node', told) : fail('node', told, `${majorMin}.${minorMin} or later is needed`);
}

/**
 * Whether what is to be kept on disk can be, by what the spool itself would do: a small file is written and deleted. Undefined
 * where nothing is to be kept.
 */
export function spoolFinding(settings: Settings, fs: SpoolFs = systemFs): Finding | undefined {
  const { durability, spoolDir } = settings;
  if (durability === 'memory') return undefined;
  try {
    tryToWrite(fs, spoolDir, [FORMAT_FOLDER, destinationHash(destinationOf(settings))]);
    return ok('spool', `${spoolDir} can be written`);
  } catch (thrown) {
    const advice = 'set RUNSPAN_SPOOL_DIR to a folder that can be; until then runs are kept in memory alone';
    return warn('spool', `${spoolDir} cannot be written: ${messageOf(thrown)}`, advice);
  }
}

/** Throws what hinders. */
function tryToWrite(fs: SpoolFs, spoolDir: string, names: readonly string[]): void {
  makePrivateFolders(fs, spoolDir, names);
  const path = join(spoolDir, ...names, `doctor-${randomUUID()}`);
  try {
    const file = new SegmentFile(fs, path);
    try {
      file.append(Buffer.alloc(TRIED_BYTES));
    } finally {
      file.close();
    }
  } finally {
    removeFile(fs, path);
  }
}
