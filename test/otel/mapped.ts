import { expect, test } from 'vitest';
import { defaultLimits } from '#src/config/limits.ts';
import type { Attributes } from '#src/otel/conventions/values.ts';
import type { SpanCapture } from '#src/otel/mapping/mapped-fields.ts';
import { DEFAULT_MAPPING, projectInAttributes, spanToRun } from '#src/otel/mapping/span-to-run.ts';
import type { SpanLike } from '#src/otel.ts';
import { payloadRules } from '#src/payload/truncate.ts';
import { bareSpan } from '../support/bare-span.ts';

const OWN_NAME = 'span';

export const SHOW_ALL: SpanCapture = {
  hideInputs: false,
  hideOutputs: false,
  payload: payloadRules(defaultLimits, undefined),
  attachmentBytes: defaultLimits.attachmentBytes,
};

const ids = { traceId: '5b8efff798038103d269b633813fc60c', spanId: 'eee19b7ec3c1b174' };

const KINDS: ReadonlySet<string> = new Set([
  ...['ai.operationId', 'gen_ai.operation.name', 'mcp.method.name'],
  ...['langfuse.observation.type', 'openinference.span.kind', 'traceloop.span.kind'],
]);

export type Mapped = ReturnType<typeof mapped>;

/** Maps a span with these attributes to its run. `name` is undefined if the run has the name of the span. */
export function mapped(attributes: Attributes, span: Partial<SpanLike> = {}, capture: Partial<SpanCapture> = {}) {
  const { name: spanName = OWN_NAME } = span;
  const given: SpanLike = {
    ...bareSpan(spanName, ids),
    startTime: [1, 0],
    endTime: [2, 0],
    status: { code: 1 },
    ...span,
    attributes,
  };
  const around = { startUs: 1_000_000, parentIds: undefined, mapping: DEFAULT_MAPPING };
  const { name, runType, inputs, outputs, tags, metadata, error, endReason, events } = spanToRun(
    given,
    { ...SHOW_ALL, ...capture },
    around,
  );
  const { otel, ...others } = Object.fromEntries([...metadata].map(([key, json]) => [key, JSON.parse(json)]));
  return {
    name: name === spanName ? undefined : name,
    runType,
    project: projectInAttributes(attributes),
    inputs: inputs && JSON.parse(inputs.json),
    outputs: outputs && JSON.parse(outputs.json),
    tags,
    metadata: others,
    error,
    endReason,
    events: events && JSON.parse(events),
  };
}

/** Expects these fields of a run. `metadata` is compared without the attributes that select the run type. */
export function expectRun(run: Mapped, expected: Partial<Mapped>): void {
  const metadata = Object.fromEntries(Object.entries(run.metadata).filter(([key]) => !KINDS.has(key)));
  const given = Object.entries({ ...run, metadata }).filter(([key]) => key in expected);
  expect(Object.fromEntries(given)).toEqual(expected);
}

/**
 * An attribute and the fields that it sets: paths with `/`, separated by spaces. `params` and `usage` are short for
 * the metadata and outputs that contain parameters and token counts. The fields have the value of the attribute unless
 * `field` is given. A row without a name has no attribute. Lists of objects are flattened.
 */
export type FieldRow = readonly [name: string, value: unknown, paths?: string, field?: unknown];

/** Maps a span with the attributes of all rows. The run must have the fields of the rows, and no others. */
export function expectFields(rows: readonly FieldRow[], span: Partial<SpanLike> = {}): void {
  const attributes: Record<string, unknown> = {};
  const expected = { metadata: {} };
  for (const [name, value, paths = '', field = value] of rows) {
    if (name !== '') Object.assign(attributes, isListOfObjects(value) ? flat(name, value) : { [name]: value });
    for (const path of paths.split(' ').flatMap(inFull)) setAt(expected, path, field);
  }
  expect(mapped(attributes, span)).toEqual(expected);
}

/** Returns a function that declares a test of a span whose kind is in the attribute `kindName`. */
export const spanTest =
  (kindName: string) =>
  (title: string, kind: string, runType: string, rows: readonly FieldRow[]): void =>
    test(title, () => expectFields([[kindName, kind, `metadata/${kindName}`], ['', runType, 'runType'], ...rows]));

/** Flattens lists and objects into attributes: `{ a: [{ b: 1 }] }` becomes `a.0.b`. */
export function flat(prefix: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return { [prefix]: value };
  return Object.assign({}, ...Object.entries(value).map(([key, item]) => flat(`${prefix}.${key}`, item)));
}

const isListOfObjects = (value: unknown): boolean => Array.isArray(value) && typeof value[0] === 'object';

function inFull(path: string): string[][] {
  const [first = '', ...rest] = path.split('/');
  if (first === '') return [];
  if (first === 'params') return [['metadata', 'ls_invocation_params', ...rest]];
  if (first !== 'usage') return [[first, ...rest]];
  return ['outputs', 'metadata'].map((side) => [side, 'usage_metadata', ...rest]);
}

function setAt(target: Record<string, unknown>, [key = '', ...rest]: string[], value: unknown): void {
  if (rest.length === 0) target[key] = value;
  else {
    target[key] ??= rest[0] === '0' ? [] : {};
    setAt(target[key] as Record<string, unknown>, rest, value);
  }
}
