import type { CallDescription } from '../instrument/plan.ts';
import {
  definedOrNone,
  type Fields,
  fieldsOf,
  isFields,
  mapped,
  numberOf,
  textOf,
  without,
} from '../payload/fields.ts';
import type { RunType, UsageMetadata } from '../run/record.ts';

/** The recorded part of a model's response. */
export interface Answer {
  readonly outputs: Readonly<Fields>;
  readonly usage?: UsageMetadata | undefined;
  /** The model that answered, which may be a dated version of the requested model. */
  readonly model?: string | undefined;
  /** An error that the service reports in a successful response. */
  readonly error?: unknown;
  /** Whether the response has an unknown format. The outputs then contain the response unchanged. */
  readonly isUnreadable?: boolean;
}

/** Reads one kind of response, and never changes it. */
export interface AnswerReader {
  /** Reads a whole response. */
  read(response: unknown): Answer;
  /** Creates a fold that reads a streamed response. Undefined if this kind of response is never streamed. */
  readonly fold?: (() => Fold) | undefined;
}

/** Combines a streamed response's chunks. Copies the data that it keeps, because the application may change a chunk. */
export interface Fold {
  /**
   * Adds a chunk. Returns the number of generated characters in it. If `isFull` is set, the text is counted but not
   * kept.
   */
  add(chunk: unknown, isFull: boolean): number;
  /** Returns the combined response, in the format of a response that is not streamed. */
  result(): unknown;
  /** An error that ended the stream but is not part of the response. */
  readonly error?: unknown;
  /** Whether the response has reached its last chunk. An application may stop reading there, before the stream ends. */
  readonly isComplete?: boolean;
  /** Whether part of the response has another format. */
  readonly isUnreadable?: boolean;
}

/**
 * Reads one kind of request to a model service, for example a chat completion, and its response. Depends only on the
 * wire format.
 */
export interface CallReader extends AnswerReader {
  /** The name of the run. */
  readonly name: string;
  readonly runType: RunType;
  /**
   * Describes a request. `options` are the caller's request options, if any. Returns undefined if the request must not
   * be recorded.
   */
  describe(body: unknown, provider: string, options?: unknown): CallDescription | undefined;
}

export interface RequestFields {
  readonly modelType: 'chat' | 'llm' | 'embedding';
  /** Keys in the body that contain inputs. All other keys are recorded as parameters. */
  readonly inputKeys: readonly string[];
  /** Converts the inputs. By default, they are recorded unchanged. */
  readonly inputs?: (body: Fields) => Fields;
}

/** The lists of tools and tool servers in a request body, and the keys under which their items contain credentials. */
const SERVER_LISTS = ['tools', 'mcp_servers'];
const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'authorization_token', 'headers']);

function withoutCredentials(server: unknown): unknown {
  const hasCredentials = isFields(server) && Object.keys(server).some((key) => CREDENTIALS.has(key));
  return hasCredentials ? without(server, CREDENTIALS) : server;
}

export function describeRequest(given: unknown, provider: string, fields: RequestFields): CallDescription {
  const body = fieldsOf(given);
  const { inputKeys, modelType, inputs } = fields;
  const parameters = without(body, new Set(inputKeys));
  for (const key of SERVER_LISTS) {
    if (parameters[key] !== undefined) parameters[key] = mapped(parameters[key], withoutCredentials);
  }
  const { max_completion_tokens, max_output_tokens, max_tokens } = body;
  const stop = body.stop ?? body.stop_sequences ?? undefined;
  return {
    inputs: inputs === undefined ? Object.fromEntries(inputKeys.map((key) => [key, body[key]])) : inputs(body),
    metadata: {
      ls_provider: provider,
      ls_model_type: modelType,
      ls_model_name: textOf(body.model),
      ls_temperature: numberOf(body.temperature),
      ls_max_tokens: numberOf(max_completion_tokens ?? max_output_tokens ?? max_tokens),
      ls_stop: typeof stop === 'string' ? [stop] : stop,
      ls_invocation_params: definedOrNone(parameters),
    },
  };
}

/**
 * Reads responses that are objects with at least one of the `required` fields, or with an error. Any other response is
 * recorded unchanged and is unreadable. A stream without any chunk has the response `undefined`.
 */
export function objectReader(
  required: readonly string[],
  answerOf: (response: Fields) => Answer,
  fold?: () => Fold,
): AnswerReader {
  const known = [...required, 'error'];
  return {
    read(value) {
      const isKnown = isFields(value) && known.some((key) => value[key] !== undefined && value[key] !== null);
      return isKnown ? answerOf(value) : { outputs: { outputs: value }, isUnreadable: value !== undefined };
    },
    fold,
  };
}

/** Returns a service's error as one line, or undefined if neither value is a string. */
export function errorLine(kind: unknown, message: unknown): string | undefined {
  const parts = [textOf(kind), textOf(message)].filter((part) => part !== undefined);
  return parts.length === 0 ? undefined : parts.join(': ');
}
