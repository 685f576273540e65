import type { Fields } from '../../payload/fields.ts';
import { heldRateOf, type RunContext, type RunOwner } from '../../run/context/context.ts';
import { contextOf } from '../../run/context/current.ts';
import { inheritedFrom } from '../../run/context/inherited.ts';
import { placement } from '../../run/context/placement.ts';
import type { EncodedRun, Project } from '../../run/encoded-run.ts';
import { notInherited } from '../../run/fields.ts';
import type { Hiding, StartOptions } from '../../run/run-options.ts';
import type { RunSink } from '../../run/sink.ts';
import { runNameOf } from '../mapping/span-identity.ts';
import type { SpanPlans } from '../mapping/span-plan.ts';
import type { SpanMapping } from '../mapping/span-to-run.ts';
import type { SpanContextLike, SpanLike } from '../span-like.ts';
import { refusedContent } from './span-call.ts';

export interface SpanStart {
  readonly ids: SpanContextLike;
  /** Ids of the parent span, even if the parent span has no run. */
  readonly parentIds: SpanContextLike | undefined;
  readonly parent: RunContext | undefined;
  /** Whether the span belongs to no run of an incoming request: it records the request itself, or starts a new trace. */
  readonly isAboveRequest?: boolean;
  readonly sink: RunSink;
  /** The project for a run without a parent. A project in the span's attributes takes precedence. */
  readonly project: Project | undefined;
  readonly mapping: SpanMapping;
  readonly plans: SpanPlans;
  /** Metadata from the baggage of the span's parent context. */
  readonly baggage?: Fields | undefined;
  /** Payloads that the run must not record, even if its sink records payloads. */
  readonly hiding?: Hiding;
  /** The number of the start among the starts and ends of the sink's calls. */
  readonly startSequence: number;
  /** Whether the span has ended already, because only its last attributes have selected it. */
  readonly isEnded?: boolean;
}

/** Returns the start of a run below the run of the incoming request, if there is one. */
export function inRequest(start: SpanStart): SpanStart {
  const { isAboveRequest, sink: exporter, project } = start;
  if (isAboveRequest === true) return start;
  const { parent } = placement({ exporter, project }, start.parent);
  return parent === start.parent ? start : { ...start, parent };
}

/** Whether the run may be light: nothing needs more of it than its end. */
export function mayBeLight({ parent, sink, baggage }: SpanStart): boolean {
  const { hooks, sampling } = sink.capture;
  const isPlain = hooks === undefined && sampling === undefined && sink.hold === undefined && baggage === undefined;
  return isPlain && (parent === undefined || (parent.sampled && !parent.refused && heldRateOf(parent) === undefined));
}

/** Returns the context of a run that is not passed to its sink yet. */
export function lightContext(
  place: Pick<EncodedRun, 'id' | 'project' | 'dottedOrder'>,
  span: SpanLike,
  owner: RunOwner,
  { parent, sink }: SpanStart,
): RunContext {
  const run = { ...place, traceId: parent?.traceId ?? place.id };
  return contextOf(run, inheritedFrom(parent, sink), 'kept', undefined, owner, parent, refusedContent(span));
}

export function optionsOf(
  id: string,
  project: Project,
  span: SpanLike,
  startUs: number,
  { parent, sink, baggage }: SpanStart,
): StartOptions {
  const options: StartOptions = { name: runNameOf(span.name), id, project, startUs, hiding: refusedContent(span) };
  if (baggage !== undefined) options.metadata = notInherited(baggage, inheritedFrom(parent, sink).metadata);
  return options;
}
