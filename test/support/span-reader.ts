import type { RunRecord } from '#src/run/record.ts';

export interface RunInSpan {
  /** `end_time` is missing if the span ends when it starts, because the run's end is unknown. */
  readonly record: Partial<RunRecord>;
  /** Whether the exporter has ended the run. A run that was interrupted may come from disk, as a whole. */
  readonly isIncomplete: boolean;
}

interface Span {
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
  readonly status?: { readonly message?: string };
}

export function readSpans(body: Buffer): RunInSpan[] {
  const { resourceSpans } = JSON.parse(body.toString()) as {
    resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
  };
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(runIn)));
}

function runIn({ name, startTimeUnixNano, endTimeUnixNano, attributes, status }: Span): RunInSpan {
  const values = Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
  const payload = (key: string) => (values[key] === undefined ? undefined : JSON.parse(values[key]));
  const isIncomplete = values['runspan.incomplete'] === true;
  const isOpen = isIncomplete && startTimeUnixNano === endTimeUnixNano;
  return {
    record: {
      id: values['runspan.dotted_order'].slice(-36),
      name,
      inputs: payload('input.value'),
      outputs: payload('output.value'),
      ...(!isOpen && { end_time: endTimeUnixNano }),
    },
    isIncomplete: isIncomplete || /^(Incomplete|Interrupted): /.test(status?.message ?? ''),
  };
}
