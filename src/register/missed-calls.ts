import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { isModelAddress } from '../integrations/fetch/dialects.ts';
import { isRecordedAround } from '../integrations/fetch/unread.ts';
import { fieldsOf } from '../payload/fields.ts';
import { channel } from '../platform/node.ts';
import { addressOf, onHttpRequest } from './http-requests.ts';
import { isLeftToLangsmith } from './packages/langsmith.ts';

const PLACE = 'runspan/register missed calls';

const CLIENTS: readonly (readonly [userAgent: RegExp, client: string])[] = [
  [/^axios\//, 'axios'],
  [/^aws-sdk-/, 'the AWS SDK'],
];

/** Logs a warning if a model call is not sent with `fetch` and no other integration records it. */
export function warnOfMissedCalls(): void {
  onHttpRequest((request) => {
    const url = addressOf(request);
    if (url !== undefined) observe(url, request.method, (name) => request.getHeader(name));
  });
  channel('undici:request:create').subscribe((message) =>
    guard(PLACE, () => {
      const { origin, path, method, headers } = fieldsOf(fieldsOf(message).request);
      // All requests of `fetch`, also of Node's own, have this header: https://fetch.spec.whatwg.org/#fetch-metadata-headers.
      const isFetch = (Array.isArray(headers) ? headers : `${headers}`).includes('sec-fetch-mode');
      const address = `${origin}${path}`;
      if (!isFetch && URL.canParse(address)) observe(new URL(address), method, () => undefined, 'undici');
    }),
  );
  // The Bedrock client of the AWS SDK uses HTTP/2.
  channel('http2.client.stream.created').subscribe((message) =>
    guard(PLACE, () => {
      const headers = fieldsOf(fieldsOf(message).headers);
      const address = `https://${headers[':authority'] ?? headers.host}${headers[':path']}`;
      if (URL.canParse(address)) observe(new URL(address), headers[':method'], (name) => headers[name]);
    }),
  );
}

function observe(url: URL, method: unknown, headerOf: (name: string) => unknown, module = 'node:http'): void {
  if (method !== 'POST' || !isModelAddress(url) || isRecordedAround()) return;
  if (isLeftToLangsmith((name) => `${headerOf(name)}`, 'llm', undefined)) return;
  const userAgent = `${headerOf('user-agent')}`;
  const client = CLIENTS.find(([pattern]) => pattern.test(userAgent))?.[1] ?? module;
  diagnostics.warnOnce(
    `missed call ${client}`,
    `a model call to ${url.hostname} is not recorded, because ${client} does not send it with fetch; record it with traceable, or see https://github.com/runspan/runspan/blob/main/docs/fetch.md#limits`,
  );
}
