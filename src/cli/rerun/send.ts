import { messageOf } from '../../base/text.ts';
import type { Method } from '../../instrument/results/observer.ts';
import { bodyReader } from '../../integrations/fetch/body.ts';
import { readerNamed, sendable } from '../../integrations/fetch/dialects.ts';
import type { Exchange } from '../../integrations/fetch/exchange.ts';
import { exchangingFetch } from '../../integrations/fetch/record-fetch.ts';
import { MEANING } from '../../integrations/fetch/request.ts';
import { defined, exactJson, type Fields, textOf } from '../../payload/fields.ts';
import { MASK } from '../../payload/redaction/redact.ts';
import { delay } from '../../platform/timers.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { Run } from '../../run/run.ts';
import { currentRun } from '../../run/start-run.ts';
import type { CallReader } from '../../services/call-reader.ts';
import { messagesOfOutputs } from '../../services/conversation.ts';
import { keyHeader, type ServiceRules } from './service-key.ts';

/** A request to a model service, with its key. */
export interface ServiceRequest {
  readonly reader: CallReader;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Returns what to send for a recorded call. Throws an HTTP 409 error if it cannot be sent. */
export function serviceRequest(
  { call = '', url = '', headers = {} }: Partial<Exchange>,
  request: Fields,
  rules: ServiceRules,
): ServiceRequest {
  const reader = readerNamed(call);
  const sent = sendable(url, request);
  if (reader === undefined || sent === undefined)
    throw new HttpError(409, 'the address of the call is not recorded; runspan dev records calls with a JSON body');
  // The key is sent in a header, so that a user, a password and masked values are left out.
  const address = Object.assign(new URL(sent.url), { username: '', password: '', hash: '' });
  const { searchParams } = address;
  for (const [name, value] of [...searchParams]) if (value.includes(MASK)) searchParams.delete(name);
  const version = call.startsWith('anthropic.') ? { 'anthropic-version': '2023-06-01' } : {};
  const recorded = defined(Object.fromEntries(MEANING.map((name) => [name, textOf(headers[name])])));
  return {
    reader,
    url: address.href,
    headers: { ...version, ...recorded, 'content-type': 'application/json', ...keyHeader(address, call, rules) },
    body: exactJson(sent.body),
  };
}

/** How often the text of an answer is reported, in milliseconds. */
const TEXT_EVERY_MS = 100;
/** Time limit of a request, in milliseconds. */
const ANSWER_MAX_MS = 600_000;
/** Time that a run has to end after its response, in milliseconds. A copy of an error response is read beside it. */
const RUN_ENDS_MS = 2_000;

/**
 * Sends a request below the current run. Returns the id of the run that has recorded it, and why it failed. `onText` gets
 * the text of the answer so far. Never rejects.
 */
export async function send(
  request: ServiceRequest,
  left: AbortSignal,
  onText: (text: string) => void,
): Promise<{ readonly text: string } & Readonly<Record<'runId' | 'error', string | undefined>>> {
  let run: Run | undefined;
  const fetched = exchangingFetch((...args) => {
    run = currentRun();
    return Reflect.apply(fetch, undefined, args);
  });
  let text = '';
  const keep = (sofar: string): void => {
    text = sofar;
    onText(text);
  };
  const error = await answer(request, fetched, left, keep).catch(messageOf);
  const endMs = performance.now() + RUN_ENDS_MS;
  while (run?.isOpen && performance.now() < endMs) await delay(1, undefined, true);
  return { runId: run?.id, text, error };
}

/** Reads the answer. Returns why it is none. */
async function answer(
  { reader, url, headers, body }: ServiceRequest,
  fetched: Method,
  left: AbortSignal,
  onText: (text: string) => void,
): Promise<string | undefined> {
  const signal = AbortSignal.any([left, AbortSignal.timeout(ANSWER_MAX_MS)]);
  // A key must not follow a redirect.
  const init: RequestInit = { method: 'POST', headers, body, redirect: 'manual', signal };
  const response = (await fetched(url, init)) as Response;
  const fold = bodyReader(reader, response.headers.get('content-type') ?? '').fold?.();
  let nextMs = 0;
  for await (const chunk of response.body ?? []) {
    fold?.add(chunk, false);
    if (!response.ok || performance.now() < nextMs) continue;
    onText(textIn(reader, fold?.result()));
    nextMs = performance.now() + TEXT_EVERY_MS;
  }
  if (!response.ok) return `the service responded with status ${response.status}`;
  onText(textIn(reader, fold?.result()));
  return undefined;
}

function textIn(reader: CallReader, response: unknown): string {
  const messages = messagesOfOutputs(reader.read(response).outputs) ?? [];
  return messages.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === 'text' ? part.text : []))).join('\n');
}
