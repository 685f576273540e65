import { compareText, rootIn } from '../base/forest.ts';
import { isObject } from '../config/checker.ts';
import { type Fields, fieldsOf, parsedJson } from '../payload/fields.ts';
import {
  type Entry,
  type Fixture,
  masked,
  type RecordedCall,
  type RecordedRequest,
  type ReplayMode,
} from './fixture.ts';
import { type ExportedRun, isModelCall, traceCallsOf } from './trace-calls.ts';

/** A trace as `runspan test` and `replay` read it. */
export interface RecordedTrace {
  readonly root: ExportedRun;
  /** The runs in the order of their starts. */
  readonly runs: readonly ExportedRun[];
  readonly entry: Entry | undefined;
  /** The HTTP request that the program has answered. Undefined if it has answered none, or if the body is not recorded. */
  readonly request: RecordedRequest | undefined;
}

/** Reads an exported trace, which has at least one run, and whose parents come before their children. */
export function recordedTrace(runs: readonly ExportedRun[]): RecordedTrace {
  const root = rootIn(runs) as ExportedRun;
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
const REQUEST = 'request';

/** Returns the fixture of a trace, and the calls that it lacks. `failed` is the step at which the trace failed. */
export function fixtureOf(
  { root, runs, entry, request }: RecordedTrace,
  mode: ReplayMode,
  failed?: ExportedRun,
): { readonly fixture: Fixture; readonly missing: readonly string[] } {
  const { ofRuns, missing } = traceCallsOf(runs);
  const required = failed && ofRuns.slice(0, runs.indexOf(failed)).flat().length;
  const liveAt = failed && isModelCall(failed) ? required : undefined;
  const fixture: Fixture = {
    runspan: 1,
    name: root.name,
    trace: root.trace_id,
    mode,
    required,
    inputs: masked(root.inputs) as Fields,
    entry,
    request,
    // The recorded answer to a failed call is its failure.
    calls: ofRuns.flat().map((call, index) => (index === liveAt ? live(call) : call)),
  };
  return { fixture, missing };
}

function live({ below, call, request }: RecordedCall): RecordedCall {
  return { below, call, request, isLive: true };
}
