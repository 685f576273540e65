import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { tracedBy } from '../instrument/traceable.ts';
import { wrapAISDK as wrapSdk } from '../integrations/ai-sdk/sdk.ts';
import { defined, fieldsOf, textOf } from '../payload/fields.ts';
import { exporterOf } from './client.ts';
import { RunTree, type RunTreeConfig } from './run-tree.ts';
import { planOf } from './traceable.ts';
import type { AnyFunction } from './types.ts';

/** Options of `wrapSDK`. */
export type WrapSDKOptions = Partial<RunTreeConfig & { runName: string }>;

/**
 * Returns a proxy of an SDK client that records an `llm` run for each method call. Methods of nested objects are also
 * recorded. Return values stay the same, so a synchronous method still returns a value and not a promise.
 */
export function wrapSDK<Sdk extends object>(sdk: Sdk, options: WrapSDKOptions = {}): Sdk {
  const { name, runName, ...others } = options;
  return proxyOf(sdk, name ?? runName ?? sdk.constructor?.name, { run_type: 'llm', ...others });
}

function proxyOf<Target extends object>(target: Target, name: string, config: Partial<RunTreeConfig>): Target {
  return new Proxy(target, {
    get(_, key) {
      const value: unknown = Reflect.get(target, key);
      const path = `${name}.${String(key)}`;
      const own = Reflect.getOwnPropertyDescriptor(target, key);
      // A proxy must return the original value of a read-only property.
      if (own?.configurable === false && own.writable === false) return value;
      if (typeof value === 'function') {
        const metadata = { ...RunTree.inheritedMetadata(config), ...config.metadata };
        return tracedBy(planOf({ ...config, metadata, name: path }), value.bind(target));
      }
      const isNested = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
      return isNested ? proxyOf(value, path, config) : value;
    },
  });
}

/** Options of `wrapAISDK` and of `providerOptions.langsmith` in a single call. */
export type WrapAISDKConfig = Partial<
  Pick<RunTreeConfig, 'name' | 'id' | 'tags' | 'metadata' | 'project_name' | 'client' | 'tracingEnabled'>
> & { readonly [option: string]: unknown };

const FUNCTIONS = ['generateText', 'streamText', 'generateObject', 'streamObject'];

/**
 * Returns the AI SDK with traced functions that accept LangSmith's options. Inputs and outputs are recorded in the same
 * format as by `wrapAISDK` in `runspan/ai`. If an option such as `processInputs` is set, calls are not traced and a
 * warning is logged.
 */
export function wrapAISDK<Sdk extends object>(ai: Sdk, config: WrapAISDKConfig = {}): Sdk {
  const wrapped = wrapSdk(ai);
  const members = FUNCTIONS.flatMap((name) => {
    const fn: unknown = Reflect.get(wrapped, name);
    return typeof fn === 'function' && 'with' in fn ? [[name, withConfig(fn as TracedFunction, config)] as const] : [];
  });
  return members.length === 0 ? ai : { ...wrapped, ...Object.fromEntries(members) };
}

/** Returns options to pass as `providerOptions.langsmith` in an AI SDK call. */
export function createLangSmithProviderOptions<_Fn extends AnyFunction = AnyFunction>(
  config: WrapAISDKConfig = {},
): Record<string, never> {
  return config as Record<string, never>;
}

type TracedFunction = AnyFunction & { with(options: object): AnyFunction };

function withConfig(fn: TracedFunction, config: WrapAISDKConfig): AnyFunction {
  return (params: unknown, ...rest: unknown[]) => {
    const { model, providerOptions } = fieldsOf(params);
    const { langsmith, ...others } = fieldsOf(providerOptions);
    const traced = guard('wrapAISDK', () => {
      const own = fieldsOf(langsmith) as WrapAISDKConfig;
      const metadata = {
        ...RunTree.inheritedMetadata({ ...config, ...own }),
        ls_integration: 'vercel-ai-sdk',
        ...config.metadata,
        ...own.metadata,
      };
      const tags = [...(config.tags ?? []), ...(own.tags ?? [])];
      const { config: settings, modelId } = fieldsOf(model);
      const name = textOf(model) ?? textOf(fieldsOf(settings).provider) ?? textOf(modelId) ?? 'unknown';
      return fn.with(callOptions({ name, ...config, ...own, metadata, tags }));
    });
    const given = langsmith === undefined ? params : { ...fieldsOf(params), providerOptions: others };
    return (traced ?? fn)(given, ...rest);
  };
}

function callOptions({ name, id, tags, metadata, project_name, client, tracingEnabled, ...others }: WrapAISDKConfig) {
  const processing = Object.keys(others).find((option) => /process/i.test(option) && others[option] !== undefined);
  if (processing !== undefined) {
    diagnostics.warnOnce(
      'langsmith wrapAISDK',
      `wrapAISDK: \`${processing}\` is not supported, so the calls are not traced; use \`redact\` of \`configure\`.`,
    );
  }
  const exporter = exporterOf({ client, tracingEnabled: processing === undefined ? tracingEnabled : false });
  return defined({ name, id, tags, metadata, project: project_name, exporter });
}
