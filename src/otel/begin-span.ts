import { safeText } from '../base/text.ts';
import { Run } from '../run/run.ts';
import { sample } from '../run/sampling.ts';
import type { SpanLike } from './span-like.ts';
import type { SpanEntry } from './span-registry.ts';
import { runIdOf, SpanRun, type SpanStart } from './span-run.ts';

/** The run that a span becomes, or what stands for it when sampling leaves its trace out. */
export function beginSpan(span: SpanLike, start: SpanStart): SpanRun | Run {
  return sampledOut(span, start) ?? new SpanRun(span, start);
}

/** A span that is no run, at least until it ends: what is below it moves up. */
export class LeftOutSpan implements SpanEntry {
  readonly start: SpanStart;

  constructor(start: SpanStart) {
    this.start = start;
  }

  get context(): SpanEntry['context'] {
    return this.start.parent;
  }
}

function sampledOut(span: SpanLike, { parent, sink, project }: SpanStart): Run | undefined {
  if (parent?.sampled !== false && sink.capture.sampling === undefined) return undefined;
  const named = typeof project === 'string' ? { project } : project && { projectId: project.id };
  const options = { name: safeText(span.name), id: runIdOf(span), ...named };
  const verdict = sample(options, parent, sink);
  return verdict.isKept ? undefined : new Run(options, parent, sink, undefined, verdict);
}
