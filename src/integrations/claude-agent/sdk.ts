import { guard } from '../../base/guard.ts';
import { followAsyncIterable } from '../../instrument/results/iterator.ts';
import {
  interceptOwn,
  isObjectOrFunction,
  type Method,
  noObserver,
  tryFollow,
} from '../../instrument/results/observer.ts';
import { shapedLike, tracedBy } from '../../instrument/traceable.ts';
import { fieldsOf, signalOf, textOf } from '../../payload/fields.ts';
import { environment } from '../../platform/node.ts';
import type { CallDescription, Run } from '../../run/run.ts';
import type { CallOptions, WrapOptions } from '../../run/run-options.ts';
import { withRun } from '../../run/start-run.ts';
import { copyWithTraced, unwrapCopy, wrap } from '../wrap.ts';
import { openTools, QueryRecorder, SOURCE } from './query-recorder.ts';

export const TRACED_EXPORTS: readonly string[] = ['query', 'tool'];

/**
 * Returns a copy of the Claude Agent SDK with traced functions. Example: `const { query } = wrapClaudeAgentSDK(sdk)`, where
 * `sdk` is `import * as sdk from '@anthropic-ai/claude-agent-sdk'`. Each query becomes a run, with a nested run for each
 * model call and tool. Runs of subagents are below the tool that starts them. Runs that start in the handler of a `tool`
 * are below the run of the tool. All other exports are unchanged.
 *
 * The query is the SDK's own object, and `wrapClaudeAgentSDK` reads no message ahead. Wrapping a copy again has no effect.
 * If the argument is not the SDK, `wrapClaudeAgentSDK` logs a warning and returns the argument unchanged.
 */
export function wrapClaudeAgentSDK<Sdk extends object>(sdk: Sdk, options?: WrapOptions): Sdk {
  const expected = "what `import * as sdk from '@anthropic-ai/claude-agent-sdk'` gives";
  return wrap('wrapClaudeAgentSDK', expected, sdk, options, (checked) => {
    const { query, tool } = fieldsOf(sdk);
    const isSdk = typeof query === 'function' && typeof tool === 'function';
    return isSdk && copyWithTraced(sdk, checked, { query: tracedQuery, tool: tracedTool });
  });
}

/** Returns the SDK that `wrapClaudeAgentSDK` has copied. Any other value is returned unchanged. */
export function unwrapClaudeAgentSDK<Sdk extends object>(copy: Sdk): Sdk {
  return unwrapCopy(copy);
}

const recorders = new WeakMap<Run, QueryRecorder>();

function tracedQuery(query: Method, options: CallOptions): Method {
  const start = function (this: unknown, params: unknown, ...rest: unknown[]): unknown {
    return Reflect.apply(query, this, [withoutTelemetry(params), ...rest]);
  };
  const plan = { name: SOURCE, ...options, runType: 'chain', describe: describeQuery, follow: followQuery };
  return tracedBy(plan, shapedLike(start, query));
}

function describeQuery([params]: unknown[]): CallDescription {
  const { prompt, options } = fieldsOf(params);
  const { model, abortController } = fieldsOf(options);
  return {
    inputs: {},
    metadata: { ls_provider: 'anthropic', ls_model_name: textOf(model) },
    signal: signalOf(fieldsOf(abortController).signal),
    started(run) {
      const recorder = new QueryRecorder(run);
      recorders.set(run, recorder);
      const chunk = (given: unknown): void => void guard(SOURCE, () => recorder.prompted(fieldsOf(given)));
      if (!isObjectOrFunction(prompt)) chunk({ message: { role: 'user', content: prompt } });
      else tryFollow(prompt, () => followAsyncIterable(prompt, { ...noObserver, chunk }));
    },
  };
}

function followQuery(query: object, run: Run): boolean {
  const recorder = recorders.get(run);
  if (recorder === undefined || !tryFollow(query, () => followAsyncIterable(query, recorder))) return false;
  for (const key of ['close', 'interrupt']) {
    interceptOwn(query, key, (stop, self, args) => {
      recorder.isStopped = true;
      return Reflect.apply(stop, self, args);
    });
  }
  recorder.watch(query);
  return true;
}

/**
 * Returns the parameters with the telemetry of Claude Code turned off, if it would send the same calls to the endpoint of
 * the runs, as under `runspan dev`. Also if the query is not recorded, so that its calls are not sent either.
 */
function withoutTelemetry(params: unknown): unknown {
  const silent = guard(SOURCE, () => {
    const { options } = fieldsOf(params);
    const env = fieldsOf(fieldsOf(options).env ?? environment());
    const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces, OTEL_EXPORTER_OTLP_ENDPOINT: all } = env;
    const isSame = textOf(traces ?? all)?.startsWith(textOf(env.RUNSPAN_ENDPOINT) ?? ' ');
    if (!env.CLAUDE_CODE_ENABLE_TELEMETRY || !isSame) return params;
    const silentEnv = { ...env, OTEL_TRACES_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none' };
    return { ...fieldsOf(params), options: { ...fieldsOf(options), env: silentEnv } };
  });
  return silent ?? params;
}

/** The position of the handler in the arguments of `tool`. */
const HANDLER = 3;

/** Claude Code sends the id of the `tool_use` block with the request to the tool. */
function tracedTool(tool: Method): Method {
  return shapedLike(function (this: unknown, ...args: unknown[]): unknown {
    const handler = args[HANDLER];
    const given = typeof handler === 'function' ? args.with(HANDLER, inToolRun(handler as Method)) : args;
    return Reflect.apply(tool, this, given);
  }, tool);
}

function inToolRun(handler: Method): Method {
  return shapedLike(function (this: unknown, ...args: unknown[]): unknown {
    const id = guard(SOURCE, () => fieldsOf(fieldsOf(args[1])._meta)['claudecode/toolUseId']);
    return withRun(openTools.get(id), () => Reflect.apply(handler, this, args));
  }, handler);
}
