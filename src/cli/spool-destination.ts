import { destinationOf } from '../export/create-exporter.ts';
import type { Settings } from '../export/settings.ts';
import { addressOf, destinationHash } from '../export/spool-folder.ts';
import type { DestinationSurvey } from '../export/spool-survey.ts';
import { counted } from './terminal-text.ts';

/** The folder's name of what settings lead to, and how messages call it, without the key or the workspace. */
export function namedDestination(settings: Settings): { readonly hash: string; readonly name: string } {
  const destination = destinationOf(settings);
  const { endpoint, workspaceId, apiKey } = destination;
  const whose =
    workspaceId !== undefined ? 'with this workspace' : apiKey !== undefined ? 'with this key' : 'without a key';
  return { hash: destinationHash(destination), name: `${addressOf(endpoint)} ${whose}` };
}

/** A line on what waits for other destinations; undefined when nothing does. No folder tells which these are. */
export function othersText(others: readonly DestinationSurvey[]): string | undefined {
  const waiting = others.filter(({ owners }) => owners.some(({ files }) => files.length > 0)).length;
  if (waiting === 0) return undefined;
  return `there are runs for ${counted(waiting, 'other endpoint, workspace or key', 'other endpoints, workspaces or keys')}`;
}
