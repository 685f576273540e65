import { guard } from '../base/guard.ts';
import { replaceMethod, restoreMethods } from '../instrument/method.ts';
import type { Plan } from '../instrument/plan.ts';
import { tracedBy } from '../instrument/traceable.ts';
import { followApiPromise } from './api-promise.ts';
import { clientOptionsOf, type TracedClientOptions, tellNoClient } from './client-options.ts';
import { describeOpenAICall, type TracedMethod, tracedMethods } from './openai-calls.ts';
import { providerOf } from './openai-provider.ts';

/** What a client has to have: that of the `openai` package has it, and clients of compatible services. */
export interface OpenAILike {
  readonly chat: { readonly completions: { create(...args: never[]): unknown } };
}

const PLACE = 'wrapOpenAI';

/**
 * Traces the calls of a client of the `openai` package: chat completions, responses, completions, embeddings and images,
 * also through its helpers (`parse`, `stream`, `runTools`). Each call becomes a run below the current one. The client is
 * changed in place and given back; what it returns are the SDK's own promises and streams. Clients that `withOptions` derives
 * are traced too. Again it changes nothing; with other options, `unwrapOpenAI` comes first.
 *
 * Anything that is no such client is given back unchanged, with one line that says so.
 */
export function wrapOpenAI<Client extends OpenAILike>(client: Client, options?: TracedClientOptions): Client {
  const { enabled = true, ...checked } = clientOptionsOf(PLACE, options);
  if (!enabled) return client;
  const methods = guard(PLACE, () => methodsOf(client)) ?? [];
  if (methods.length === 0) {
    tellNoClient(PLACE, 'a client of the openai package', client);
    return client;
  }
  const provider = guard(PLACE, () => providerOf(client)) ?? 'openai';
  for (const { owner, key, method } of methods) {
    const plan = planOf(method, provider, checked);
    replaceMethod(PLACE, owner, key, (original) => tracedBy(plan, original));
  }
  wrapDerived(client, checked);
  return client;
}

/** Puts the methods of a wrapped client back as they were, and gives the client back. Runs under way are not affected. */
export function unwrapOpenAI<Client extends OpenAILike>(client: Client): Client {
  const methods = guard(PLACE, () => methodsOf(client)) ?? [];
  for (const { owner } of methods) restoreMethods(PLACE, owner);
  if (methods.length > 0) restoreMethods(PLACE, client);
  return client;
}

/** Options that hold for each call. */
type CallOptions = Omit<TracedClientOptions, 'enabled'>;

interface FoundMethod {
  readonly owner: object;
  readonly key: string;
  readonly method: TracedMethod;
}

/** Those of the traced methods that this client has: older ones have fewer, and compatible ones may. */
function methodsOf(client: unknown): FoundMethod[] {
  return tracedMethods.flatMap((method) => {
    const key = method.path.at(-1) as string;
    let owner: unknown = client;
    for (const name of method.path.slice(0, -1)) owner = (owner as Record<string, unknown> | null | undefined)?.[name];
    if (typeof owner !== 'object' || owner === null) return [];
    return typeof (owner as Record<string, unknown>)[key] === 'function' ? [{ owner, key, method }] : [];
  });
}

function planOf(method: TracedMethod, provider: string, options: CallOptions): Plan {
  return {
    ...options,
    name: method.name,
    runType: method.runType,
    describe: ([body]) => describeOpenAICall(method, provider, body),
    follow: (result, run) => followApiPromise(result, run, method.reader),
  };
}

function wrapDerived(client: OpenAILike, options: CallOptions): void {
  if (typeof (client as { withOptions?: unknown }).withOptions !== 'function') return;
  replaceMethod(PLACE, client, 'withOptions', (withOptions) => {
    const wrapper = {
      withOptions(this: unknown, ...args: unknown[]): unknown {
        return wrapOpenAI(Reflect.apply(withOptions, this, args) as OpenAILike, options);
      },
    };
    return wrapper.withOptions;
  });
}
