import { guard } from '../base/guard.ts';
import { replaceMethod } from '../instrument/methods.ts';
import type { PlanOptions } from '../instrument/plan.ts';
import { disguised, tracedBy } from '../instrument/traceable.ts';
import type { Run } from '../run/run.ts';
import { usableOptions } from '../run/run-options.ts';
import { preloadDelivery } from '../run/sink.ts';
import { currentRun } from '../run/start-run.ts';
import { operationAnswer, outcomeOf, PartsFold } from './ai-answer.ts';
import { patch } from './ai-model.ts';
import { describeOperation } from './ai-operation.ts';
import { watchedStream } from './ai-stream.ts';
import { tracedTools } from './ai-tools.ts';
import { AnswerReading } from './answer-reading.ts';
import { type Fields, fieldsOf, isPlainObject, textOf } from './fields.ts';
import { tellUntraced } from './untraced.ts';

type Callable = (...args: unknown[]) => unknown;

const FUNCTIONS = ['generateText', 'streamText', 'generateObject', 'streamObject', 'embed', 'embedMany', 'rerank'];
const AGENTS = ['ToolLoopAgent', 'Experimental_Agent'];

/**
 * The AI SDK with its functions traced: `const { generateText } = wrapAISDK(ai)`, where `ai` is `import * as ai from
 * 'ai'`. Each call becomes a run, below it one for each call of the model and one for each tool that is executed. Agents
 * made with its `ToolLoopAgent` are traced too. Every other member is that of `ai`.
 *
 * Models that are passed are changed in place, as `wrapModel` does it; tools, options and results are not. For the
 * majors 4 to 7 of `ai`. Anything else is given back unchanged, with one line that says so. It takes no options: tags,
 * metadata, project and exporter are those of the run around a call.
 */
export function wrapAISDK<Sdk extends object>(sdk: Sdk): Sdk;
export function wrapAISDK<Sdk extends object>(sdk: Sdk, options?: unknown): Sdk {
  // `wrapAISDK` has no options. Every option that is passed is reported. If an option would hide payloads, the SDK is
  // left untraced.
  if (Object.keys(usableOptions<object>('wrapAISDK', options, {})).length > 0) return sdk;
  preloadDelivery();
  const wrapped = guard('wrapAISDK', () => wrappedMembers(fieldsOf(sdk)));
  if (wrapped !== undefined && Object.keys(wrapped).length > 0) return { ...sdk, ...wrapped };
  if (wrapped !== undefined) tellUntraced('wrapAISDK(ai)', "what `import * as ai from 'ai'` gives", sdk);
  return sdk;
}

function wrappedMembers(sdk: Fields): Fields {
  const members: Fields = {};
  for (const name of FUNCTIONS) {
    const original = sdk[name];
    if (typeof original === 'function')
      members[name] = once(original, () => tracedFunction(name, original as Callable, sdk));
  }
  for (const name of AGENTS) {
    const original = sdk[name];
    if (typeof original === 'function') members[name] = once(original, () => tracedAgent(original as Callable, sdk));
  }
  return members;
}

/** What took the place of a function of the SDK, so that wrapping again gives the same; a wrapper stands for itself. */
const wrappers = new WeakMap<object, unknown>();

function once(original: object, wrap: () => object): unknown {
  const known = wrappers.get(original);
  if (known !== undefined) return known;
  const wrapper = wrap();
  wrappers.set(original, wrapper).set(wrapper, wrapper);
  return wrapper;
}

function tracedFunction(name: string, original: Callable, sdk: Fields): Callable {
  const prepare = (options: unknown, ...rest: unknown[]): unknown =>
    original(isTracing() ? (guard('wrapAISDK', () => prepared(options, sdk)) ?? options) : options, ...rest);
  return tracedBy(operation(name), disguised(prepare, original));
}

/** The call is in its run by now, if it has one. */
function isTracing(): boolean {
  return currentRun() !== undefined;
}

function operation(name: string): PlanOptions {
  return { name, runType: 'chain', describe: ([options]) => describeOperation(fieldsOf(options)), complete };
}

/** An agent calls the functions of its own package: what those need is prepared when it is made. */
function tracedAgent(original: Callable, sdk: Fields): Callable {
  function Agent(...args: unknown[]): unknown {
    if (new.target === undefined) return original(...args);
    const [settings, ...rest] = args;
    const ready = guard('wrapAISDK', () => prepared(settings, sdk)) ?? settings;
    const agent = Reflect.construct(original, [ready, ...rest], new.target);
    const name = guard('wrapAISDK', () => textOf(fieldsOf(settings).id)) ?? original.name;
    for (const method of ['generate', 'stream']) {
      replaceMethod('wrapAISDK', agent, method, (call) => tracedBy(operation(`${name}.${method}`), call));
    }
    return agent;
  }
  return disguised(Agent as Callable, original);
}

/**
 * The options of a call as they are handed on: the same, unless they have something in them that is to be traced. An
 * instance of a class cannot be copied without a difference: of such options the model alone is traced.
 */
function prepared(options: unknown, sdk: Fields): unknown {
  const { model, tools, prepareStep, prepareCall } = fieldsOf(options);
  trace(model, sdk);
  if (!isPlainObject(options)) return options;
  const changes: Fields = {};
  const ready = tracedTools(tools);
  if (ready !== tools) changes.tools = ready;
  if (typeof prepareStep === 'function') changes.prepareStep = tracingModels(prepareStep as Callable, sdk);
  if (typeof prepareCall === 'function') changes.prepareCall = tracingModels(prepareCall as Callable, sdk);
  return Object.keys(changes).length === 0 ? options : { ...options, ...changes };
}

/** A callback that may choose another model: it is traced before the SDK gets it. */
function tracingModels(choose: Callable, sdk: Fields): Callable {
  return function (this: unknown, ...args: unknown[]): unknown {
    const choice = Reflect.apply(choose, this, args);
    const look = (chosen: unknown): unknown => {
      trace(fieldsOf(chosen).model, sdk);
      return chosen;
    };
    return choice instanceof Promise ? choice.then(look) : look(choice);
  };
}

/** A model given by its name is made by the provider for such names: the application's, or else the gateway. */
function trace(model: unknown, sdk: Fields): void {
  guard('wrapAISDK', () => (typeof model === 'string' ? traceProvider(sdk) : patch(model)));
}

function traceProvider(sdk: Fields): void {
  const provider = fieldsOf((globalThis as Fields).AI_SDK_DEFAULT_PROVIDER ?? sdk.gateway);
  for (const key of ['languageModel', 'embeddingModel', 'textEmbeddingModel', 'rerankingModel']) {
    if (typeof provider[key] !== 'function') continue;
    replaceMethod('wrapAISDK', provider, key, (make) => {
      const making = function (this: unknown, ...args: unknown[]): unknown {
        const model = Reflect.apply(make, this, args);
        guard('wrapAISDK', () => patch(model));
        return model;
      };
      return disguised(making, make);
    });
  }
}

/**
 * Ends the run of a call. A result that streams has one stream from which all others are made: watched there, nothing is
 * read that the application does not read, and its callbacks stay its own.
 */
function complete(run: Run, result: unknown): void {
  const { baseStream } = fieldsOf(result);
  if (baseStream instanceof ReadableStream && !baseStream.locked) {
    const reading = new AnswerReading(run, new PartsFold(operationAnswer));
    if (Reflect.set(fieldsOf(result), 'baseStream', watchedStream(baseStream, reading))) return;
  }
  // To read a promise of a result that streams would begin to read the stream.
  run.keepResult(isStreaming(fieldsOf(result)) ? {} : outcomeOf(result));
  run.end();
}

function isStreaming(result: Fields): boolean {
  return 'textStream' in result || 'fullStream' in result;
}
