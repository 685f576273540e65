import { shownAddress } from '../../config/checker.ts';
import { env } from '../../config/environment.ts';
import { resolveSettings, type Settings } from '../../config/options.ts';
import { isSameOrigin } from '../../config/service.ts';
import { destinationOf } from '../../delivery/create-exporter.ts';
import { destinationHash } from '../../delivery/spool/directory.ts';
import type { DestinationSurvey, Files, Holding } from '../../delivery/spool/survey.ts';
import { CommandFailure, UsageError } from '../command-line.ts';
import { counted } from '../terminal-text.ts';

/** Options that all `runspan spool` actions accept. */
export interface FolderOptions {
  readonly dir?: string | undefined;
  readonly endpoint?: URL | undefined;
}

/** Returns the exporter settings. `--endpoint` overrides the endpoint in the environment. */
export function settingsFor({ dir, endpoint }: FolderOptions): Settings {
  if (endpoint !== undefined) checkEndpoint(endpoint);
  const settings = resolveSettings({
    tracing: true,
    durability: 'spill',
    ...(dir !== undefined && { spoolDir: dir }),
    ...(endpoint !== undefined && { endpoint: endpoint.href }),
  });
  if (settings !== undefined) return settings;
  if (endpoint === undefined && env('RUNSPAN_ENDPOINT') === undefined)
    throw new UsageError('no endpoint: set RUNSPAN_ENDPOINT or --endpoint');
  throw new CommandFailure('the settings are invalid; run runspan doctor for details');
}

/**
 * Throws if the key or workspace in the environment belongs to another origin than `--endpoint`. Without the key, the
 * command would look in the wrong folder and find no runs.
 */
function checkEndpoint(endpoint: URL): void {
  const configured = env('RUNSPAN_ENDPOINT');
  const withheld = (['RUNSPAN_API_KEY', 'RUNSPAN_WORKSPACE_ID'] as const).find((name) => env(name) !== undefined);
  if (configured === undefined || withheld === undefined || isSameOrigin(endpoint.href, configured)) return;
  throw new UsageError(
    `${withheld} is not sent to ${endpoint.origin}, because RUNSPAN_ENDPOINT has another origin; ` +
      `set RUNSPAN_ENDPOINT to ${shownAddress(endpoint)}`,
  );
}

/**
 * Returns the destination's folder name (`hash`) and display name. The display name contains neither the key nor the
 * workspace.
 */
export function namedDestination(settings: Settings): { readonly hash: string; readonly name: string } {
  const destination = destinationOf(settings);
  const { endpoint, workspaceId, apiKey } = destination;
  let credentials = 'without a key';
  if (workspaceId !== undefined) credentials = 'with this workspace';
  else if (apiKey !== undefined) credentials = 'with this key';
  return { hash: destinationHash(destination), name: `${shownAddress(endpoint)} ${credentials}` };
}

export function holdingFiles<Owner extends Files>(owners: readonly Owner[]): Owner[] {
  return owners.filter(({ files }) => files.length > 0);
}

export function runsIn(holdings: readonly Holding[]): number {
  return holdings.reduce((sum, { runs }) => sum + runs, 0);
}

/**
 * Returns a line about spooled runs for other destinations, if any. The spool folder does not contain the destinations'
 * names, so their hashes are listed.
 */
export function othersText(others: readonly DestinationSurvey[]): string[] {
  const count = others.filter(({ owners }) => holdingFiles(owners).length > 0).length;
  if (count === 0) return [];
  return [
    `the folder has runs for ${counted(count, 'other endpoint, workspace or key', 'other endpoints, workspaces or keys')}`,
  ];
}
