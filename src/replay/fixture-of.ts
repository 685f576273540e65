import { isObject } from '../config/checker.ts';
import { fieldsOf, parsedJson } from '../payload/fields.ts';
import { compareText } from '../testing/forest.ts';
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

/** Reads an exported trace, which has at least one run, and whose parents come before their children. If the root run has not arrived, the first run is taken for it. */
export function recordedTrace(runs: readonly ExportedRun[]): RecordedTrace {
  const root = runs.find(({ parent_run_id: parent }) => parent === undefined) ?? (runs[0] as ExportedRun);
  const { entry } = fieldsOf(root.extra?.runtime);
  const body = root.attachments?.find(({ name }) => name === REQUEST);
  return {
    root,
    runs: runs.toSorted((a, b) => compareText(a.start_time, b.start_time)),
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
