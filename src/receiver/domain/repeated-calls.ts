import { fieldsOf, firstText, listOf } from '../../payload/fields.ts';
import {
  CALL_TYPES,
  type CallRecord,
  isRepeated,
  RESPONSE_ID,
  requestKey,
  SOURCES,
  sameCalls,
} from '../../run/same-call.ts';
import type { RunFields } from './run-message.ts';

/** The evidence about a call that is in the run's own messages. */
export type CallEvidence = Pick<CallRecord, 'source' | 'responseId' | 'request'>;

/**
 * Returns the evidence about a call. `request` is the fingerprint from `requestOf`. The source is undefined if the
 * application itself has recorded the run.
 */
export function callEvidenceOf({ extra }: RunFields, request: string | undefined): CallEvidence {
  const { [SOURCES]: sources, [RESPONSE_ID]: responseId, otel } = extra?.metadata ?? {};
  const source = firstText(listOf(sources)[0], fieldsOf(fieldsOf(otel).scope).name);
  return { source, responseId: firstText(responseId), request };
}

/** Returns the fingerprint of a call's request. Also returns it if the message does not contain the run type. */
export function requestOf({ run_type: type, inputs }: RunFields): string | undefined {
  return inputs !== undefined && (type === undefined || CALL_TYPES.includes(type)) ? requestKey(inputs) : undefined;
}

/** A further record of a call that another run records. */
export interface RepeatedCall {
  /** Id of the outermost run that records the call. */
  readonly outerId: string;
  /** Whether the run's usage does not count, because another record further out has the usage of the call. */
  readonly isUsageRepeated: boolean;
}

/**
 * Returns the runs that record the same call as another run, by id. The runs must be all visible runs of one trace.
 * `countsAlone` returns whether a run has usage that counts if no other run records the same call.
 */
export function repeatedCallsIn<Run extends CallRecord>(
  runs: readonly Run[],
  countsAlone: (run: Run) => boolean,
): ReadonlyMap<string, RepeatedCall> {
  const outers = sameCalls(runs);
  const counting = new Set(outers.size === 0 ? [] : runs.filter(countsAlone).map(({ id }) => id));
  const hasUsage = (id: string): boolean => counting.has(id);
  const outermost = new Map(outers);
  return new Map(
    [...outers.keys()].map((id) => [
      id,
      { outerId: outermostOf(id, outermost), isUsageRepeated: isRepeated(id, outers, hasUsage) },
    ]),
  );
}

/** Returns the last run of a chain. Shortens the chains in `outers`, so that long chains cost little. */
function outermostOf(id: string, outers: Map<string, string>): string {
  let at = id;
  for (let next = outers.get(at); next !== undefined; next = outers.get(at)) {
    outers.set(at, outers.get(next) ?? next);
    at = next;
  }
  return at;
}
