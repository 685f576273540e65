import { env } from '../base/env.ts';
import { destinationOf } from '../export/create-exporter.ts';
import { isSameOrigin } from '../export/service-settings.ts';
import type { Settings } from '../export/settings.ts';
import { addressOf, destinationHash } from '../export/spool/directory.ts';
import type { DestinationSurvey } from '../export/spool/survey.ts';
import { counted } from './terminal-text.ts';

/** The folder's name of what settings lead to, and how messages call it, without the key or the workspace. */
export function namedDestination(settings: Settings): { readonly hash: string; readonly name: string } {
  const destination = destinationOf(settings);
  const { endpoint, workspaceId, apiKey } = destination;
  const whose =
    workspaceId !== undefined ? 'with this workspace' : apiKey !== undefined ? 'with this key' : 'without a key';
  return { hash: destinationHash(destination), name: `${addressOf(endpoint)} ${whose}` };
}

/**
 * Throws if the key or the workspace of the environment belongs to another origin than `--endpoint`: the command would look
 * for runs without a key, and find none.
 */
export function checkEndpoint(endpoint: URL): void {
  const configured = env('RUNSPAN_ENDPOINT');
  const withheld = (['RUNSPAN_API_KEY', 'RUNSPAN_WORKSPACE_ID'] as const).find((name) => env(name) !== undefined);
  if (configured === undefined || withheld === undefined || isSameOrigin(endpoint.href, configured)) return;
  throw new Error(
    `${withheld} is not sent to ${endpoint.origin}, because RUNSPAN_ENDPOINT has another origin; ` +
      `set RUNSPAN_ENDPOINT to ${addressOf(endpoint)} too`,
  );
}

/** A line on what waits for other destinations; undefined when nothing does. No folder tells which these are. */
export function othersText(others: readonly DestinationSurvey[]): string | undefined {
  const waiting = others.filter(({ owners }) => owners.some(({ files }) => files.length > 0)).length;
  if (waiting === 0) return undefined;
  return `there are runs for ${counted(waiting, 'other endpoint, workspace or key', 'other endpoints, workspaces or keys')}`;
}
