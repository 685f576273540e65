import { guard } from '../../base/guard.ts';
import { replaceMethod } from '../../instrument/methods.ts';
import type { PlanOptions } from '../../instrument/plan.ts';
import { type Callable, shapedLike, tracedBy } from '../../instrument/traceable.ts';
import { copyWith, type Fields, fieldsOf, isPlainObject, textOf } from '../../payload/fields.ts';
import type { Run } from '../../run/run.ts';
import type { CallOptions, WrapOptions } from '../../run/run-options.ts';
import { currentRun } from '../../run/start-run.ts';
import { copyWithTraced, type Tracer, unwrapCopy, wrap } from '../wrap.ts';
import { outputsOfAnswer } from './answer.ts';
import { describeExecution, describeOperation } from './calls.ts';
import { tryWrapModel } from './model.ts';
import { observedOperation, openOperation } from './operation.ts';

const FUNCTIONS = [
  ...['generateText', 'streamText', 'generateObject', 'streamObject', 'embed', 'embedMany', 'rerank'],
  // Versions 4 to 6 export some of these functions only with the prefix.
  ...['generateImage', 'generateSpeech', 'transcribe'].flatMap((name) => [name, `experimental_${name}`]),
];
const AGENTS = ['ToolLoopAgent', 'Experimental_Agent'];
const TRACERS: Readonly<Record<string, Tracer>> = Object.fromEntries([
  ...FUNCTIONS.map((name) => [name, tracerOf(name)]),
  ...AGENTS.map((name) => [name, tracedAgent]),
]);
export const TRACED_MEMBERS: readonly string[] = Object.keys(TRACERS);
const MODEL_FACTORIES = [
  ...['languageModel', 'embeddingModel', 'textEmbeddingModel', 'rerankingModel'],
  ...['imageModel', 'speechModel', 'transcriptionModel'],
];

/**
 * Returns a copy of the AI SDK with traced functions. Example: `const { generateText } = wrapAISDK(ai)`, where `ai` is
 * `import * as ai from 'ai'`. Each call becomes a run, with a nested run for each model call and tool execution. Agents
 * created with the returned `ToolLoopAgent` are also traced. All other exports are unchanged. Wrapping a copy again has no
 * effect.
 *
 * Models passed to a traced function are changed in place, as `wrapModel` does without options. Tools and options are not
 * changed. Supports `ai` versions 4 to 7. If the argument is not the AI SDK, `wrapAISDK` logs a warning and returns the
 * argument unchanged.
 */
export function wrapAISDK<Sdk extends object>(sdk: Sdk, options?: WrapOptions): Sdk {
  const expected = "what `import * as ai from 'ai'` gives";
  return wrap('wrapAISDK', expected, sdk, options, (checked) => copyWithTraced(sdk, checked, TRACERS));
}

/** Returns the SDK that `wrapAISDK` has copied. Any other value is returned unchanged. Models stay traced. */
export function unwrapAISDK<Sdk extends object>(copy: Sdk): Sdk {
  return unwrapCopy(copy);
}

function tracerOf(name: string): Tracer {
  return (original, options, sdk) => {
    const prepare = (settings: unknown, ...rest: unknown[]): unknown => {
      // If tracing is on, the current run is the run of this call.
      const isTraced = currentRun() !== undefined;
      return original(isTraced ? prepared(settings, sdk) : settings, ...rest);
    };
    return tracedBy(operation(name, options), shapedLike(prepare, original));
  };
}

function operation(name: string, options: CallOptions, agent: Fields = {}): PlanOptions {
  const { telemetry, experimental_telemetry } = agent;
  return {
    ...options,
    name: options.name ?? name.replace('experimental_', ''),
    runType: 'chain',
    describe: ([settings]) => {
      const description = describeOperation({ telemetry, experimental_telemetry, ...fieldsOf(settings) });
      const started = (run: Run): void =>
        void Object.assign(openOperation(run), { hiding: description.hiding, isUnpublished: true });
      return { ...description, started };
    },
    complete,
  };
}

/**
 * Wraps an agent class. Agents call untraced SDK functions, so each agent's model and tools are wrapped at creation.
 */
function tracedAgent(original: Callable, options: CallOptions, sdk: Fields): Callable {
  function Agent(...args: unknown[]): unknown {
    if (new.target === undefined) return original(...args);
    const [settings, ...rest] = args;
    const agent = Reflect.construct(original, [prepared(settings, sdk), ...rest], new.target);
    const name = guard('wrapAISDK', () => textOf(fieldsOf(settings).id)) ?? original.name;
    for (const method of ['generate', 'stream']) {
      replaceMethod('wrapAISDK', agent, method, (call) =>
        tracedBy(operation(`${name}.${method}`, options, fieldsOf(settings)), call),
      );
    }
    return agent;
  }
  return shapedLike(Agent as Callable, original);
}

/**
 * Traces the model in the options. If the options contain tools or callbacks, returns a copy with traced tools and
 * callbacks. Options that are a class instance are returned unchanged.
 */
function prepared(options: unknown, sdk: Fields): unknown {
  const copy = guard('wrapAISDK', () => {
    const { model, tools, prepareStep, prepareCall } = fieldsOf(options);
    traceModel(model, sdk);
    if (!isPlainObject(options)) return options;
    const changes: Fields = {};
    const traced = tracedTools(tools);
    if (traced !== tools) changes.tools = traced;
    if (typeof prepareStep === 'function') changes.prepareStep = tracingModels(prepareStep as Callable, sdk);
    if (typeof prepareCall === 'function') changes.prepareCall = tracingModels(prepareCall as Callable, sdk);
    return Object.keys(changes).length === 0 ? options : { ...options, ...changes };
  });
  return copy ?? options;
}

/** Wraps a callback that may choose another model. The chosen model is wrapped before the SDK receives it. */
function tracingModels(choose: Callable, sdk: Fields): Callable {
  return function (this: unknown, ...args: unknown[]): unknown {
    const choice = Reflect.apply(choose, this, args);
    const trace = (chosen: unknown): unknown => {
      guard('wrapAISDK', () => traceModel(fieldsOf(chosen).model, sdk));
      return chosen;
    };
    return choice instanceof Promise ? choice.then(trace) : trace(choice);
  };
}

/**
 * Traces a model. If `model` is a name, traces every model that the default provider or the SDK's gateway creates by
 * name.
 */
function traceModel(model: unknown, sdk: Fields): void {
  if (typeof model !== 'string') {
    tryWrapModel(model);
    return;
  }
  const provider = fieldsOf((globalThis as Fields).AI_SDK_DEFAULT_PROVIDER ?? sdk.gateway);
  for (const key of MODEL_FACTORIES.filter((factory) => typeof provider[factory] === 'function')) {
    replaceMethod('wrapAISDK', provider, key, (make) => {
      const making = function (this: unknown, ...args: unknown[]): unknown {
        const made = Reflect.apply(make, this, args);
        guard('wrapAISDK', () => tryWrapModel(made));
        return made;
      };
      return shapedLike(making, make);
    });
  }
}

/**
 * Ends the run of a call. In a streaming result, only `baseStream` is observed, because all other streams are derived
 * from it.
 */
function complete(run: Run, given: unknown): void {
  const result = fieldsOf(given);
  const { baseStream } = result;
  if (baseStream instanceof ReadableStream && !baseStream.locked) {
    if (Reflect.set(result, 'baseStream', observedOperation(baseStream, run))) return;
  }
  // Do not read other properties here. In a streaming result, that would start the stream.
  const isStreaming = 'textStream' in result || 'fullStream' in result;
  run.keepResult(isStreaming ? {} : outputsOfAnswer(result));
  run.end();
}

/**
 * Returns copies of the tools with a traced `execute`. In `execute`, `this` is still the application's tool. Class
 * instances are not traced, because a copy could behave differently.
 */
function tracedTools(tools: unknown): unknown {
  if (!isPlainObject(tools)) return tools;
  const changes: Fields = {};
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(tools))) {
    const copy = tracedTool(name, value);
    if (copy !== undefined) changes[name] = copy;
  }
  return Object.keys(changes).length === 0 ? tools : copyWith(tools, changes);
}

/** Traced copies of tools. When an agent passes its tools to `generateText`, they must not be traced again. */
const tracedCopies = new WeakSet<object>();

function tracedTool(name: string, tool: unknown): Fields | undefined {
  if (!isPlainObject(tool) || tracedCopies.has(tool)) return undefined;
  const execute: unknown = Object.getOwnPropertyDescriptor(tool, 'execute')?.value;
  if (typeof execute !== 'function') return undefined;
  const plan: PlanOptions = {
    name,
    runType: 'tool',
    source: 'wrapAISDK',
    describe: ([input, options]) => describeExecution(input, fieldsOf(options), openOperation(currentRun()).hiding),
    aggregate: (chunks) => chunks.at(-1),
  };
  const copy = copyWith(tool, { execute: tracedBy(plan, execute.bind(tool)) });
  tracedCopies.add(copy);
  return copy;
}
