import { guard } from '../base/guard.ts';
import { replaceMethod } from '../instrument/methods.ts';
import type { CallDescription } from '../instrument/plan.ts';
import { disguised, traceable, tracedBy } from '../instrument/traceable.ts';
import { copyWith, type Fields, fieldsOf, isPlainObject, listOf, textOf } from '../payload/fields.ts';
import { type Instrumentation, patchModule } from './module-hooks.ts';

type Callable = (...args: unknown[]) => unknown;

/** Records each call to `runTools` as a run. Model calls and tool calls become child runs. */
export const openai: Instrumentation = {
  name: 'openai',
  start: () =>
    patchModule({
      module: 'openai/lib/AbstractChatCompletionRunner',
      sentWith: { header: 'x-stainless-helper-method', value: /^runTools$/ },
      patch: patchRunTools,
    }),
};

/** Records each tool runner of Anthropic's beta API as a run. Model calls and tool calls become child runs. */
export const anthropic: Instrumentation = {
  name: 'anthropic',
  start: () =>
    patchModule({
      module: '@anthropic-ai/sdk/resources/beta/messages/messages',
      sentWith: { header: 'x-stainless-helper', value: /ToolRunner/ },
      patch: patchToolRunner,
    }),
};

/**
 * `runTools` returns a runner that calls `_runTools` later. The promise from `_runTools` settles when the runner ends.
 */
function patchRunTools({ AbstractChatCompletionRunner: Runner }: Fields): void {
  const place = 'runspan/register openai';
  replaceMethod(place, prototypeOf(Runner), '_runTools', (runTools) => {
    return disguised(function (this: unknown, client: unknown, params: unknown, ...rest: unknown[]): unknown {
      const { messages } = fieldsOf(this);
      const traced = tracedBy(
        {
          name: 'openai.runTools',
          runType: 'chain',
          describe: () => describeLoop(params),
          complete: (run) => run.end({ messages: listOf(messages).slice(-1) }),
        },
        runTools,
      );
      return Reflect.apply(traced, this, [client, withTracedTools(params, openaiTool), ...rest]);
    }, runTools);
  });
}

/** The runner calls the model and the tools while the application iterates over the runner. */
function patchToolRunner({ Messages }: Fields): void {
  const place = 'runspan/register anthropic';
  replaceMethod(place, prototypeOf(Messages), 'toolRunner', (toolRunner) => {
    return disguised(function (this: unknown, body: unknown, ...rest: unknown[]): unknown {
      const params = withTracedTools(body, (tool) => withTraced(tool, 'run', tool.name));
      const runner = Reflect.apply(toolRunner, this, [params, ...rest]);
      const plan = {
        name: 'anthropic.toolRunner',
        runType: 'chain',
        describe: () => describeLoop(body),
        // A streaming runner yields one stream for each model call.
        aggregate: (chunks: unknown[]) => {
          const { role, content } = fieldsOf(chunks.at(-1));
          return content === undefined ? undefined : { messages: [{ role, content }] };
        },
      };
      replaceMethod(place, fieldsOf(runner), Symbol.asyncIterator, (iterate) => tracedBy(plan, iterate));
      return runner;
    }, toolRunner);
  });
}

function prototypeOf(type: unknown): object {
  return fieldsOf(fieldsOf(type).prototype);
}

function describeLoop(params: unknown): CallDescription {
  const { model, messages, system, tools } = fieldsOf(params);
  const names = listOf(tools).map((tool) => textOf(fieldsOf(tool).name) ?? fieldsOf(fieldsOf(tool).function).name);
  return { inputs: { model, system, messages, tools: names } };
}

function withTracedTools(params: unknown, traced: (tool: Fields) => Fields): unknown {
  const copy = guard('runspan/register tools', () => {
    const { tools } = fieldsOf(params);
    if (!isPlainObject(params) || !Array.isArray(tools)) return params;
    // Class instances are not copied, because a copy would lose private fields.
    return copyWith(params, { tools: tools.map((tool) => (isPlainObject(tool) ? traced(tool) : tool)) });
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
  const traced = traceable(fn as Callable, {
    name: textOf(name) || fn.name || 'tool',
    runType: 'tool',
    // Only the first argument is recorded, because the other arguments contain the runner with all messages.
    inputs: ([input]) => (isPlainObject(input) ? input : { input }),
  });
  const call = (...args: unknown[]): unknown => Reflect.apply(traced, tool, args);
  return copyWith(tool, { [key]: disguised(call, fn as Callable) });
}
