import { guard } from '../base/guard.ts';
import { replaceMethod, restoreMethods } from '../instrument/methods.ts';
import type { CallDescription, PlanOptions } from '../instrument/plan.ts';
import { disguised, tracedBy } from '../instrument/traceable.ts';
import type { RunType } from '../run/record.ts';
import { preloadDelivery } from '../run/sink.ts';
import type { AnswerReader } from './answer.ts';
import { followApiPromise } from './api-promise.ts';
import { clientOptionsOf, type TracedClientOptions } from './client-options.ts';
import { fieldsOf, isFields } from './fields.ts';
import { followChunks } from './model-stream.ts';
import { tellUntraced } from './untraced.ts';

/** An SDK that Stainless generates, and what of its clients is traced. */
export interface Sdk {
  /** The function that wraps its clients, as it is named in what is told. */
  readonly place: string;
  /** What that function takes, in words. */
  readonly client: string;
  /** In which its service gives the id of a request. */
  readonly requestIdHeader: string;
  /** The first is what makes a client one; of the others older clients have fewer, and compatible ones may. */
  methodsOf(client: object): readonly TracedMethod[];
}

/** One method of a client, and how its calls are recorded. */
export interface TracedMethod {
  /** Where it is on the client. */
  readonly path: readonly [...resources: string[], method: string];
  readonly name: string;
  readonly runType: RunType;
  /** What is recorded of a call before it is made, given the first of its arguments; undefined to leave it untraced. */
  describe(body: unknown): CallDescription | undefined;
  readonly reader: AnswerReader;
}

/** Has calls of these methods traced, in place, and those of the clients that `withOptions` derives. */
export function wrapClient<Client>(sdk: Sdk, client: Client, options: unknown): Client {
  const { enabled = true, ...checked } = clientOptionsOf(sdk.place, options);
  if (!enabled) return client;
  preloadDelivery();
  const methods = guard(sdk.place, () => methodsOn(client, sdk));
  if (methods?.length === 0) tellUntraced(`${sdk.place}(client)`, sdk.client, client);
  for (const { owner, key, method } of methods ?? []) {
    const plan = planOf(sdk, method, checked);
    replaceMethod(sdk.place, owner, key, (original) => tracedBy(plan, original), method.path.join('.'));
  }
  if (methods !== undefined && methods.length > 0) wrapDerived(sdk, client as object, checked);
  return client;
}

/** Puts the methods back as they were. */
export function unwrapClient<Client>(sdk: Sdk, client: Client): Client {
  const methods = guard(sdk.place, () => methodsOn(client, sdk)) ?? [];
  for (const { owner } of methods) restoreMethods(sdk.place, owner);
  if (methods.length > 0) restoreMethods(sdk.place, client as object);
  return client;
}

/** Options that hold for each call. */
type OptionsOfCalls = Omit<TracedClientOptions, 'enabled'>;

interface FoundMethod {
  readonly owner: object;
  readonly key: string;
  readonly method: TracedMethod;
}

function methodsOn(client: unknown, sdk: Sdk): FoundMethod[] {
  if (typeof client !== 'object' || client === null) return [];
  const methods = sdk.methodsOf(client);
  const found = methods.flatMap((method) => {
    const key = method.path.at(-1) as string;
    let owner: unknown = client;
    for (const name of method.path.slice(0, -1)) owner = (owner as Record<string, unknown> | null | undefined)?.[name];
    if (typeof owner !== 'object' || owner === null) return [];
    return typeof (owner as Record<string, unknown>)[key] === 'function' ? [{ owner, key, method }] : [];
  });
  return found[0]?.method === methods[0] ? found : [];
}

function planOf(sdk: Sdk, method: TracedMethod, options: OptionsOfCalls): PlanOptions {
  return {
    ...options,
    name: method.name,
    runType: method.runType,
    isModelCall: true,
    describe: ([body, options]) => {
      const description = method.describe(body);
      return description && { ...description, span: ownSpanOf(options) };
    },
    follow: (result, run) =>
      followApiPromise(result, run, method.reader, sdk.requestIdHeader) || followChunks(result, run, method.reader),
  };
}

/**
 * Returns the span that a stream helper of Anthropic's SDK started for the call and passes to `create` in the request
 * options.
 */
function ownSpanOf(options: unknown): object | undefined {
  const { span } = fieldsOf(fieldsOf(options).__span);
  return isFields(span) ? span : undefined;
}

function wrapDerived(sdk: Sdk, client: object, options: OptionsOfCalls): void {
  if (typeof (client as { withOptions?: unknown }).withOptions !== 'function') return;
  replaceMethod(sdk.place, client, 'withOptions', (withOptions) => {
    const deriving = {
      withOptions(this: unknown, ...args: unknown[]): unknown {
        return wrapClient(sdk, Reflect.apply(withOptions, this, args), options);
      },
    };
    return disguised(deriving.withOptions, withOptions);
  });
}
