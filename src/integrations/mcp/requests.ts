import { cut } from '../../base/text.ts';
import type { PlanOptions } from '../../instrument/plan.ts';
import { defined, type Fields, fieldsOf, isFields, listOf, mapped, signalOf, textOf } from '../../payload/fields.ts';
import type { CallDescription, Run } from '../../run/run.ts';
import type { CallOptions } from '../../run/run-options.ts';
import { blockWithDataUri, dataUriOf, withField } from '../../services/media.ts';

/** A request that becomes a run, on the side that sends it or on the side that handles it. */
export interface McpRequest {
  readonly method: 'tools/call' | 'resources/read' | 'prompts/get';
  readonly params: unknown;
}

/** Functions that read the parameters of a request. Only these requests become runs. */
const READERS: Readonly<Record<McpRequest['method'], (params: Fields) => Pick<CallDescription, 'name' | 'inputs'>>> = {
  'tools/call': ({ name, arguments: given }) => ({ name: textOf(name) ?? 'tool', inputs: fieldsOf(given) }),
  'resources/read': ({ uri }) => ({ inputs: { uri } }),
  'prompts/get': ({ name, arguments: given }) => ({
    name: `prompts/get ${name}`,
    inputs: defined({ prompt: name, arguments: given }),
  }),
};

export function isRecordedRequest(request: {
  readonly method: unknown;
  readonly params: unknown;
}): request is McpRequest {
  return typeof request.method === 'string' && Object.hasOwn(READERS, request.method);
}

/** Returns the plan for the run of a request. `call` has the options of the call, or the context of the handler. */
export function planOf(
  { method, params }: McpRequest,
  options: CallOptions,
  call: Fields,
  server?: string,
): PlanOptions {
  return {
    ...options,
    name: method,
    runType: method === 'tools/call' ? 'tool' : 'chain',
    describe: () => ({
      ...READERS[method](fieldsOf(params)),
      ...(options.name && { name: options.name }),
      metadata: defined({ 'mcp.method.name': method, 'mcp.server.name': server }),
      signal: signalOf(call.signal),
    }),
    complete,
  };
}

/** Maximum length of the text of a result in the error of its run, in characters. */
const FAILURE_TEXT_MAX = 1_000;

/**
 * Ends a run. A tool reports its failure in the result, which `hideOutputs` or `redact` may hide, so the text is taken
 * from the recorded outputs.
 */
function complete(run: Run, result: unknown): void {
  run.keepResult(isFields(result) ? resultWithDataUris(result) : result);
  if (fieldsOf(result).isError === true) run.fail(failureOf(run.outputs));
  else run.end();
}

function failureOf(recorded: Fields | undefined): string {
  const texts = listOf(recorded?.content).flatMap((part) => textOf(fieldsOf(part).text) ?? []);
  const detail = texts.length === 0 ? '' : `: ${cut(texts.join('\n'), FAILURE_TEXT_MAX)}`;
  return `the tool reported an error${detail}`;
}

/** Converts the base64 of images, audio and files in a result to data URIs, which are recorded as attachments. */
function resultWithDataUris(result: Fields): Fields {
  const { content, contents, messages } = result;
  const parts = {
    content: mapped(content, partWithDataUri),
    contents: mapped(contents, partWithDataUri),
    messages: mapped(messages, (message) => withField(message, 'content', partWithDataUri(fieldsOf(message).content))),
  };
  return { ...result, ...defined(parts) };
}

function partWithDataUri(part: unknown): unknown {
  const { resource, blob, mimeType } = fieldsOf(part);
  if (resource !== undefined) return withField(part, 'resource', partWithDataUri(resource));
  return blob === undefined ? blockWithDataUri(part) : withField(part, 'blob', dataUriOf(mimeType, blob) ?? blob);
}
