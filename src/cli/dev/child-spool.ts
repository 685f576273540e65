import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { diagnostics } from '../../base/diagnostics.ts';
import { visible } from '../../base/text.ts';
import { env } from '../../config/environment.ts';
import { resolveSettings, type Settings } from '../../config/options.ts';
import { destinationOf, exporterFor } from '../../delivery/create-exporter.ts';
import { Ledger } from '../../delivery/ledger.ts';
import { destinationHash } from '../../delivery/spool/directory.ts';
import { makeFolders, systemFs } from '../../delivery/spool/fs.ts';
import { sendOptions, surveySpool } from '../../delivery/spool/survey.ts';
import { runsIn } from '../spool/destination.ts';

const SEND_MAX_MS = 5_000;

interface Target {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly programId: string;
}

interface SpoolTarget extends Target {
  /** Store of the receiver. Undefined if the receiver keeps runs in memory. */
  readonly storePath: string | undefined;
  /** Returns the address of the receiver when the command has ended. Undefined if there is no receiver. */
  readonly currentUrl: () => Promise<string | undefined>;
}

/**
 * Calls `runCommand` with environment variables for a spool folder. If the command exits with unsent runs, the spool keeps
 * these runs. The spooled runs are then sent to the receiver. If there is no receiver, the folder beside the store keeps
 * the runs for the next one. Other runs stay in the folder, and one line names the command that sends them. A durability
 * that the user has set stays in effect. If no folder can be created, no runs are spooled. Returns the result, and whether
 * runs are left on disk.
 */
export async function withSpool<Result>(
  target: SpoolTarget,
  runCommand: (variables: Record<string, string>) => Promise<Result>,
): Promise<[result: Result, isLeft: boolean]> {
  if (env('RUNSPAN_DURABILITY') !== undefined) return [await runCommand({}), false];
  const settings = settingsFor(target, '');
  const hash = settings && destinationHash(destinationOf(settings));
  const spoolDir = await makeSpoolDir(target.storePath, hash).catch(() => undefined);
  if (spoolDir === undefined) return [await runCommand({ RUNSPAN_DURABILITY: 'memory' }), false];
  let isLeft = false;
  let result: Result;
  try {
    // Without a store, no later receiver could store the runs that a killed program leaves.
    const durability = target.storePath === undefined ? 'spill' : 'write-ahead';
    result = await runCommand({ RUNSPAN_DURABILITY: durability, RUNSPAN_SPOOL_DIR: spoolDir });
    const url = await target.currentUrl();
    if (url !== undefined) await sendSpool({ ...target, url }, spoolDir, hash);
  } finally {
    isLeft = await removeIfSent(spoolDir, target.storePath === undefined ? undefined : hash);
  }
  return [result, isLeft];
}

/**
 * Sends the runs that programs of ended commands left beside the store. Runs for an endpoint that a program sets in its
 * code stay on disk.
 */
export async function sendLeftSpools(target: Target, storePath: string): Promise<void> {
  const folder = folderFor(storePath);
  for (const name of await readdir(folder).catch(() => [])) {
    const [, hash = '', pid] = SPOOL_NAME.exec(name) ?? [];
    if (hash === '') continue;
    const spoolDir = join(folder, name);
    const owners = surveySpool(spoolDir, Date.now()).flatMap((one) => (one.hash === hash ? one.owners : []));
    if (owners.some(({ state, files }) => state === 'dead' && files.length > 0))
      await sendSpool(target, spoolDir, hash);
    // The program of a running command may still write to the folder.
    if (isRunning(Number(pid))) continue;
    const left = surveySpool(spoolDir, Date.now()).flatMap((one) => one.owners);
    if (left.every(({ state, files }) => state === 'dead' && files.length === 0)) await remove(spoolDir);
  }
}

/** The destination of a spool and the process id of the command, followed by random characters. */
const SPOOL_NAME = /^([\da-f]{32})-(\d{1,10})-[\da-f]{8}$/;

function folderFor(storePath: string): string {
  return `${storePath}-spool`;
}

/** The name of the folder tells later receivers which runs in it are for a receiver of this store. */
async function makeSpoolDir(storePath: string | undefined, hash: string | undefined): Promise<string> {
  if (storePath === undefined || hash === undefined) return await mkdtemp(join(tmpdir(), 'runspan-dev-'));
  const name = `${hash}-${process.pid}-${randomBytes(4).toString('hex')}`;
  makeFolders(systemFs, folderFor(storePath), [name]);
  return join(folderFor(storePath), name);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/**
 * Removes the folder, unless it contains unsent runs, and returns whether it does. `hash` is the destination whose runs a
 * receiver of the store stores.
 */
async function removeIfSent(spoolDir: string, hash: string | undefined): Promise<boolean> {
  const unsent = surveySpool(spoolDir, Date.now())
    .map((one) => ({ hash: one.hash, runs: runsIn(one.owners) }))
    .filter(({ runs }) => runs > 0);
  if (unsent.length === 0) await remove(spoolDir);
  const own = unsent.find((one) => one.hash === hash);
  if (own !== undefined) {
    diagnostics.warn(
      `unsent runs of the command (${own.runs}) wait on disk; a running \`runspan dev\`, or the next one, stores them.`,
    );
  }
  const others = unsent.filter((one) => one !== own).map((one) => one.hash);
  if (others.length > 0) {
    diagnostics.warn(
      `unsent runs of the command wait in ${visible(spoolDir)}; set RUNSPAN_ENDPOINT to their service and run \`runspan spool send ${sendOptions(spoolDir, others)}\`.`,
    );
  }
  return unsent.length > 0;
}

/** Errors are ignored, because a background process may still be writing to the folder. */
async function remove(spoolDir: string): Promise<void> {
  await rm(spoolDir, { recursive: true, force: true }).catch(() => {});
}

function settingsFor({ url, apiKey, programId }: Target, spoolDir: string): Settings | undefined {
  const workspaceId = env('RUNSPAN_WORKSPACE_ID');
  return resolveSettings({
    tracing: true,
    endpoint: url,
    apiKey: apiKey ?? env('RUNSPAN_API_KEY') ?? '',
    ...(workspaceId !== undefined && { workspaceId }),
    headers: { 'x-runspan-program': programId },
    durability: 'spill',
    ...(spoolDir !== '' && { spoolDir }),
  });
}

async function sendSpool(target: Target, spoolDir: string, spoolDestination: string | undefined): Promise<void> {
  const settings = settingsFor(target, spoolDir);
  if (settings === undefined) return;
  const destination = spoolDestination === undefined ? {} : { spoolDestination };
  const exporter = exporterFor({ ...settings, ...destination }, new Ledger(), () => {});
  exporter.recover();
  await exporter.finish({ timeoutMs: SEND_MAX_MS });
  await exporter.close({ timeoutMs: 0 });
}
