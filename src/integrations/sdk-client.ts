import { guard } from '../base/guard.ts';
import type { Checks } from '../base/options.ts';
import { replaceMethod, restoreMethods } from '../instrument/methods.ts';
import type { PlanOptions } from '../instrument/plan.ts';
import { disguised, tracedBy } from '../instrument/traceable.ts';
import { sharedChecks, usableOptions } from '../run/run-options.ts';
import { preloadDelivery, type RunSink } from '../run/sink.ts';
import { followStream } from './answer-stream.ts';
import { followApiPromise } from './api-promise.ts';
import type { CallReader } from './call-reader.ts';
import { fieldsOf, isFields } from './fields.ts';
import { warnUntraced } from './warn-untraced.ts';

/** How the calls of a wrapped SDK client are traced. Everything is optional. */
export interface TracedClientOptions {
  /** Tags of every call: at most 1 000; a longer list is left out. */
  tags?: readonly string[];
  /** Metadata of every call. Overrides recorded metadata: `{ ls_provider: 'ollama' }` sets the provider. */
  metadata?: Readonly<Record<string, unknown>>;
  /** The project that runs are recorded in. @default the current run's project, else the exporter's */
  project?: string;
  /** The id of the project, as an alternative to its name. */
  projectId?: string;
  /** The exporter that receives the runs. @default the current run's exporter, else the configured one */
  exporter?: RunSink;
  /** False leaves the client as it is. @default true */
  enabled?: boolean;
}

const optionChecks: Checks<TracedClientOptions> = {
  ...sharedChecks,
  enabled: ['true or false', (value) => typeof value === 'boolean'],
};

/** An SDK that Stainless generates, and the methods of its clients that are traced. */
export interface Sdk {
  /** The name of the function that wraps a client, for log lines. */
  readonly place: string;
  /** The expected client, for log lines. */
  readonly client: string;
  /** The response header that contains the id of the request. */
  readonly requestIdHeader: string;
  /** The paths of the methods on the client. A client without the first method is not traced. */
  readonly methods: Readonly<Record<string, CallReader>>;
  providerOf(client: object): string;
}

/** Replaces the traced methods of a client, and of every client that `withOptions` derives from it. */
export function wrapClient<Client>(sdk: Sdk, client: Client, options: unknown): Client {
  const { enabled = true, ...checked } = usableOptions<TracedClientOptions>(sdk.place, options, optionChecks);
  if (!enabled) return client;
  preloadDelivery();
  const wrapped = guard(sdk.place, () => {
    const methods = methodsOn(client, sdk);
    const provider = methods.length > 0 ? sdk.providerOf(client as object) : '';
    for (const { owner, key, path, call } of methods) {
      const plan = planOf(sdk, call, provider, checked);
      replaceMethod(sdk.place, owner, key, (original) => tracedBy(plan, original), path);
    }
    if (methods.length > 0) wrapDerived(sdk, client as object, checked);
    return methods.length;
  });
  if (wrapped === 0) warnUntraced(`${sdk.place}(client)`, sdk.client, client);
  return client;
}

/** Restores the original methods. */
export function unwrapClient<Client>(sdk: Sdk, client: Client): Client {
  const methods = guard(sdk.place, () => methodsOn(client, sdk)) ?? [];
  for (const { owner } of methods) restoreMethods(sdk.place, owner);
  if (methods.length > 0) restoreMethods(sdk.place, client as object);
  return client;
}

type CallOptions = Omit<TracedClientOptions, 'enabled'>;

interface FoundMethod {
  readonly owner: object;
  readonly key: string;
  readonly path: string;
  readonly call: CallReader;
}

function methodsOn(client: unknown, { methods }: Sdk): FoundMethod[] {
  if (typeof client !== 'object' || client === null) return [];
  const found = Object.entries(methods).flatMap(([path, call]) => {
    const names = path.split('.');
    const key = names.pop() as string;
    const owner = names.reduce<unknown>((object, name) => fieldsOf(object)[name], client);
    if (typeof owner !== 'object' || owner === null) return [];
    return typeof fieldsOf(owner)[key] === 'function' ? [{ owner, key, path, call }] : [];
  });
  return found[0]?.path === Object.keys(methods)[0] ? found : [];
}

function planOf({ requestIdHeader }: Sdk, call: CallReader, provider: string, options: CallOptions): PlanOptions {
  return {
    ...options,
    name: call.name,
    runType: call.runType,
    isModelCall: true,
    describe: ([body, requestOptions]) => {
      const description = call.describe(body, provider);
      return description && { ...description, span: helperSpanOf(requestOptions) };
    },
    // Another instrumentation, for example Traceloop's, may return an async iterable instead of the SDK's promise.
    follow: (result, run) => followApiPromise(result, run, call, requestIdHeader) || followStream(result, run, call),
  };
}

/**
 * Returns the span that a stream helper of Anthropic's SDK started for the call and passes to `create` in the request
 * options.
 */
function helperSpanOf(requestOptions: unknown): object | undefined {
  const { span } = fieldsOf(fieldsOf(requestOptions).__span);
  return isFields(span) ? span : undefined;
}

function wrapDerived(sdk: Sdk, client: object, options: CallOptions): void {
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
