import { guard } from '../base/guard.ts';
import { shared } from '../base/shared.ts';
import type { PlanOptions } from '../instrument/plan.ts';
import { type Method, replaceOwn } from '../instrument/results/observer.ts';
import { shapedLike, traceable, tracedBy } from '../instrument/traceable.ts';
import { copyWith, type Fields, fieldsOf, isPlainObject, listOf, textOf } from '../payload/fields.ts';
import type { CallDescription, Run } from '../run/run.ts';
import type { CallOptions } from '../run/run-options.ts';

/**
 * Parameters whose tools are traced. If `runspan/register` and a wrapper trace the same tool runner, only the one that is
 * called first records it.
 */
const recorded: WeakSet<object> = shared('toolRunners', () => new WeakSet());

/** Traces `runTools` of the `openai` package. The runner that it returns calls `_runTools` later. */
export function tracedRunTools(runTools: Method, options: CallOptions): Method {
  return shapedLike(function (this: unknown, ...args: unknown[]): unknown {
    const runner = Reflect.apply(runTools, this, args);
    replaceOwn(runner as object, '_runTools', (method) => tracedOpenAILoop(method, options));
    return runner;
  }, runTools);
}

/**
 * Traces the method `_runTools` of a runner. Its promise settles when the runner ends. Model calls and tool calls become
 * child runs.
 */
export function tracedOpenAILoop(runTools: Method, options: CallOptions = {}): Method {
  return shapedLike(function (this: unknown, client: unknown, params: unknown, ...rest: unknown[]): unknown {
    if (recorded.has(params as object)) return Reflect.apply(runTools, this, [client, params, ...rest]);
    const { messages } = fieldsOf(this);
    const plan: PlanOptions = {
      ...options,
      name: options.name ?? 'openai.runTools',
      runType: 'chain',
      describe: () => describeLoop(params),
      complete: (run) => run.end({ messages: listOf(messages).slice(-1) }),
    };
    return Reflect.apply(tracedBy(plan, runTools), this, [client, withTracedTools(params, openaiTool), ...rest]);
  }, runTools);
}

/**
 * Traces `toolRunner` of Anthropic's beta API. The runner calls the model and the tools while the application iterates
 * over the runner.
 */
export function tracedToolRunner(toolRunner: Method, options: CallOptions = {}): Method {
  return shapedLike(function (this: unknown, body: unknown, ...rest: unknown[]): unknown {
    if (recorded.has(body as object)) return Reflect.apply(toolRunner, this, [body, ...rest]);
    const params = withTracedTools(body, (tool) => withTraced(tool, 'run', tool.name));
    const runner = Reflect.apply(toolRunner, this, [params, ...rest]);
    const plan: PlanOptions = {
      ...options,
      name: options.name ?? 'anthropic.toolRunner',
      runType: 'chain',
      describe: () => describeLoop(body),
      aggregate: (turns) => {
        // A streaming runner yields one stream for each model call.
        const last = fieldsOf(turns.at(-1));
        const { role, content } = fieldsOf(listOf(last.receivedMessages).at(-1) ?? last);
        return content === undefined ? undefined : { messages: [{ role, content }] };
      },
    };
    replaceOwn(runner as object, Symbol.asyncIterator, (iterate) => tracedBy(plan, iterate));
    return runner;
  }, toolRunner);
}

function describeLoop(params: unknown): CallDescription {
  const { model, messages, system, tools } = fieldsOf(params);
  const names = listOf(tools).map((tool) => textOf(fieldsOf(tool).name) ?? fieldsOf(fieldsOf(tool).function).name);
  return { inputs: { model, system, messages, tools: names }, started: (run) => void toolRunners.add(run) };
}

/** The runs of tool runners. Their model calls keep their names. */
export const toolRunners: WeakSet<Run> = new WeakSet();

function withTracedTools(params: unknown, traced: (tool: Fields) => Fields): unknown {
  const copy = guard('tracing tools', () => {
    const { tools } = fieldsOf(params);
    if (!isPlainObject(params) || !Array.isArray(tools)) return params;
    // Class instances are not copied, because a copy would lose private fields.
    const copy = copyWith(params, { tools: tools.map((tool) => (isPlainObject(tool) ? traced(tool) : tool)) });
    recorded.add(copy);
    return copy;
  });
  return copy ?? params;
}

/**
 * Traces a tool of the `openai` package. The tool's function is in `function.function`, or in `$callback` if
 * `zodFunction` created the tool.
 */
function openaiTool(tool: Fields): Fields {
  const { name } = fieldsOf(tool.function);
  if (typeof tool.$callback === 'function') return withTraced(tool, '$callback', name);
  const { function: definition } = tool;
  return isPlainObject(definition) ? copyWith(tool, { function: withTraced(definition, 'function', name) }) : tool;
}

/** Returns a copy of a tool with a traced function. In the function, `this` is still the original tool. */
function withTraced(tool: Fields, key: string, name: unknown): Fields {
  const { [key]: fn } = tool;
  if (typeof fn !== 'function') return tool;
  const traced = traceable(fn as Method, {
    name: textOf(name) || fn.name || 'tool',
    runType: 'tool',
    // Only the first argument is recorded, because the other arguments contain the runner with all messages.
    inputs: ([input]) => (isPlainObject(input) ? input : { input }),
  });
  const call = (...args: unknown[]): unknown => Reflect.apply(traced, tool, args);
  return copyWith(tool, { [key]: shapedLike(call, fn as Method) });
}
