import { RunspanError } from '../base/errors.ts';
import type { Exchange } from '../integrations/fetch/exchange.ts';
import { type Fields, fieldsOf, isFields, parsedJson, textOf } from '../payload/fields.ts';
import { defaultRedaction } from '../payload/redaction/redact.ts';
import { serialize } from '../payload/serialize.ts';
import type { PayloadRules } from '../payload/truncate.ts';
import type { CallDescription } from '../run/run.ts';

/**
 * How a replay finds the recorded call for a request. `strict`: the request is the same. `failed`: the model, the names
 * of the tools, the number of earlier answers and `stream` are the same.
 */
export type ReplayMode = 'strict' | 'failed';

/** How a program was started. Recorded in `extra.runtime.entry` of root runs, so that a test can start it again. */
export interface Entry {
  /** The name in the nearest package.json. */
  readonly package?: string;
  /** The main script, relative to the folder with the nearest package.json, with `/` between folders. */
  readonly script: string;
  /** The arguments of the script. Values of arguments with the name of a secret are masked. */
  readonly args: readonly string[];
  /** Node's own options, such as `--import tsx`. Paths are relative to the working directory. */
  readonly options: readonly string[];
  /** The working directory, relative to the same folder. Absent if it is that folder. */
  readonly folder?: string;
}

/** The HTTP request whose trace was recorded. */
export interface RecordedRequest {
  readonly method: string;
  /** The path without its query, which may contain secrets. */
  readonly path: string;
  readonly contentType?: string;
  readonly body: string;
}

/** A model call and its answer. The request contains the parameters and inputs, as a run records them. */
export interface RecordedCall extends Omit<Exchange, 'stream' | 'url' | 'headers'> {
  /** The names of the runs around the call, for example `agent > planner`. */
  readonly below: string;
  /** The events or lines of a stream as they were received, with the line breaks that end each. */
  readonly events?: readonly string[];
  /** Whether this call and all later ones are sent, because a test of a failed call needs the service. */
  readonly isLive?: true;
}

/** The model calls of a trace, from which a replay answers. Stored as JSON. */
export interface Fixture {
  /** Version of the format. */
  readonly runspan: 1;
  /** Name of the root run. */
  readonly name: string;
  /** Id of the trace. */
  readonly trace: string;
  readonly mode: ReplayMode;
  /** Number of the first calls that a replay in the mode `failed` must make: those before the failed step. */
  readonly required?: number | undefined;
  /** Inputs of the root run, by which a replay finds the trace among several of the same name. */
  readonly inputs: Fields;
  readonly entry?: Entry | undefined;
  readonly request?: RecordedRequest | undefined;
  readonly calls: readonly RecordedCall[];
}

/** Parses a fixture. Throws a RunspanError if the text is not one. `file` names it in the error. */
export function parseFixture(text: string, file: string): Fixture {
  const fixture = parsedJson(text);
  const { runspan, name, mode, calls } = fieldsOf(fixture);
  const isValid = runspan === 1 && textOf(name) !== undefined && (mode === 'strict' || mode === 'failed');
  if (isValid && Array.isArray(calls) && calls.every(isCall)) return fixture as Fixture;
  throw new RunspanError(
    'RUNSPAN_INVALID_OPTION',
    `Expected ${file} to be a fixture of this version of runspan; write it again with \`runspan test\``,
  );
}

export function fixtureText(fixture: Fixture): string {
  return `${JSON.stringify(fixture, null, 2)}\n`;
}

function isCall(value: unknown): boolean {
  const { call, request, status, error, isLive } = fieldsOf(value);
  const isAnswered = Number.isInteger(status) || typeof error === 'string' || isLive === true;
  return textOf(call) !== undefined && isFields(request) && isAnswered;
}

/** Returns what is compared of a request: its parameters and its inputs. */
export function requestOf({ inputs, metadata }: CallDescription): Fields {
  return { ...fieldsOf(fieldsOf(metadata).ls_invocation_params), ...inputs };
}

const MAX = Number.MAX_SAFE_INTEGER;

/** Returns the rules by which the secrets of a fixture are masked, which are those of payloads by default. */
export function fixtureRules(): PayloadRules {
  return { depth: MAX, width: MAX, nodes: MAX, bytes: MAX, isInline: true, redaction: defaultRedaction() };
}

/** Returns a value as it is in a fixture, with its secrets masked. */
export function masked(value: unknown): unknown {
  return JSON.parse(serialize(value, fixtureRules()));
}
