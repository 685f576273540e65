import { isObject } from '../config/checker.ts';
import { fieldsOf, parsedJson } from '../payload/fields.ts';
import type { Entry, Fixture, RecordedRequest, ReplayMode } from './fixture.ts';
import { callsOf, type ExportedRun } from './trace-calls.ts';

/** A trace as `runspan test` and `replay` read it. */
export interface RecordedTrace {
  readonly root: ExportedRun;
  /** The runs in the order of their starts. */
  readonly runs: readonly ExportedRun[];
  readonly entry: Entry | undefined;
  /** The HTTP request that the program has answered. Undefined if the trace is none or if its body is not recorded. */
  readonly request: RecordedRequest | undefined;
}

/** Reads an exported trace. Returns undefined if the root run is missing. */
export function recordedTrace(runs: readonly ExportedRun[]): RecordedTrace | undefined {
  const root = runs.find(({ parent_run_id: parent }) => parent === undefined);
  if (root === undefined) return undefined;
  const { entry } = fieldsOf(root.extra?.runtime);
  const body = root.attachments?.find(({ name }) => name === REQUEST);
  return {
    root,
    runs,
    entry: isObject(entry) ? (entry as unknown as Entry) : undefined,
    request: body && (parsedJson(Buffer.from(body.data, 'base64').toString()) as RecordedRequest),
  };
}

/** The name of the attachment with the HTTP request of a root run. */
export const REQUEST = 'request';

/** Returns the fixture of a trace, and the calls that it lacks. */
export function fixtureOf(
  { root, runs, entry, request }: RecordedTrace,
  mode: ReplayMode,
): { readonly fixture: Fixture; readonly missing: readonly string[] } {
  const { calls, missing } = callsOf(runs);
  return { fixture: { runspan: 1, name: root.name, mode, entry, request, calls }, missing };
}

/** Returns the text of a fixture's file. */
export function fixtureText(fixture: Fixture): string {
  return `${JSON.stringify(fixture, null, 2)}\n`;
}
