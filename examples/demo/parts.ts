import { inspect, isDeepStrictEqual } from 'node:util';
import { agentServer, feedback } from './agent-server.ts';
import { chatRoutes } from './chat-routes.ts';
import type { DemoContext } from './context.ts';
import { controlPlane } from './control-plane.ts';
import { delivery } from './delivery.ts';
import { ingestion } from './ingestion.ts';
import { ENDPOINTS, MULTIPART, type Part, RULES } from './interface.ts';
import type { Rule } from './rule.ts';
import { tracing } from './tracing.ts';

/** The result of a part. Each pair has the number of those that hold, and of all. */
export interface Row {
  readonly part: string;
  readonly endpoints: readonly [answered: number, listed: number];
  readonly rules: readonly [refused: number, listed: number];
  readonly checks: readonly [held: number, made: number];
  readonly ms: number;
  readonly differences: readonly string[];
}

const PARTS: Readonly<Record<string, (context: DemoContext) => Promise<void>>> = {
  'control plane': controlPlane,
  'agent server': agentServer,
  feedback,
  ingestion,
  chat: chatRoutes,
  tracing,
  delivery,
};

/** Proves one part after the other. A part that fails does not stop the others. */
export async function* proveParts(shared: Omit<DemoContext, 'check'>): AsyncGenerator<Row> {
  for (const [part, work] of Object.entries(PARTS)) {
    const startedMs = performance.now();
    const differences: string[] = [];
    let checks = 0;
    const check = (what: string, seen: unknown, expected: unknown = true): void => {
      checks += 1;
      if (!isDeepStrictEqual(seen, expected)) differences.push(`${what}: ${inspect(seen)}, not ${inspect(expected)}`);
    };
    const context = { ...shared, check };
    await work(context).catch((error: unknown) => check('the part ends', String(error)));
    const failed = differences.length;
    const endpoints = ENDPOINTS[part as Part] ?? [];
    const unanswered = endpoints.filter((endpoint) => !isAnswered(endpoint, context));
    differences.push(...unanswered.map((endpoint) => `${endpoint} was not answered`));
    const rules = RULES[part as Part] ?? [];
    const broken = (
      await Promise.all(rules.map((rule) => acceptedBy(rule, context).catch((error) => [String(error)])))
    ).flat();
    yield {
      part,
      endpoints: [endpoints.length - unanswered.length, endpoints.length],
      rules: [rules.length - broken.length, rules.length],
      checks: [checks - failed, checks],
      ms: Math.round(performance.now() - startedMs),
      differences: [...differences, ...broken],
    };
  }
}

/** Returns whether a request to the endpoint had a 2xx response. */
function isAnswered(endpoint: string, { platform, selfHosted, responses }: DemoContext): boolean {
  const pattern = new RegExp(`^${endpoint.replace(/\{\w+\}/g, '[^/]+')}$`);
  return [...platform.requests, ...selfHosted.requests, ...responses].some(
    ({ method, path, status = 0 }) => status >= 200 && status < 300 && pattern.test(`${method} ${path}`),
  );
}

/** Sends a mistake with `fetch`, because a client would refuse it. Returns how the response differs from the refusal. */
async function acceptedBy(
  [sentence, request, body, names, expected = 422, { headers } = {}]: Rule,
  { platform, selfHosted, chat, ids }: DemoContext,
): Promise<string[]> {
  const server = request.startsWith('self-hosted') ? selfHosted : platform;
  const [method = '', path = ''] = request.replace('self-hosted ', '').split(' ');
  const type = typeof body === 'string' ? MULTIPART : 'application/json';
  const send = path.startsWith('/api/threads') ? chat : fetch;
  const url = server.url + path.replace(/\{(\w+)\}/g, (_, id) => ids[id] ?? id);
  const mistake = new Request(url, {
    method,
    headers: { 'x-api-key': server.apiKey, 'content-type': type, ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  if (mistake.headers.get('x-api-key') === '') mistake.headers.delete('x-api-key');
  const response = await send(mistake);
  // An accepted stream may stay open.
  if (response.ok) await response.body?.cancel();
  const text = response.ok ? '' : await response.text();
  if (response.status === expected && isNamed(names, text)) return [];
  return [`${sentence} (${request}): expected ${expected} and ${names}, got ${response.status} ${text.slice(0, 300)}`];
}

/** Returns whether an error response has a name in the `loc` of a field, or in its text, or a field with its message. */
function isNamed(name: string, text: string): boolean {
  const { message, detail = message } = JSON.parse(text) as { readonly message?: unknown; readonly detail?: unknown };
  if (!Array.isArray(detail))
    return typeof detail === 'string' && detail.includes(name) && !detail.startsWith('No route');
  return detail.some(
    ({ loc, msg }) => Array.isArray(loc) && (loc.includes(name) || `${loc.slice(1).join('.')}: ${msg}` === name),
  );
}
