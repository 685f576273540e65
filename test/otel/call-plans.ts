// Plans of real calls and of what records them, and the execution of plans. The plan of a call says which runs record it.
import { type Attributes, context, SpanStatusCode, trace } from '@opentelemetry/api';
import type { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { wrapAnthropic } from '#src/anthropic.ts';
import { currentRun, traceable } from '#src/index.ts';
import { wrapOpenAI } from '#src/openai.ts';
import { soon } from './set-up.ts';

/** What records a call, or runs around its request. The layers of a call are listed from the outside in. */
interface Layer {
  readonly kind: 'span' | 'wrapper' | 'own' | 'frame' | 'guard';
  readonly scope: number;
  /** Whether a span is the parent of what runs inside. */
  readonly isActive: boolean;
  /** Whether a span ends before the response has arrived. */
  readonly isEarly: boolean;
  /** Whether the attributes of a span are set at its end. */
  readonly isLate: boolean;
  readonly hasInputs: boolean;
  readonly hasId: boolean;
  readonly hasUsage: boolean;
  /** Whether the other calls are made first. */
  readonly isBefore: boolean;
  /** Whether a hook changes the outputs. */
  readonly isScrubbed: boolean;
  /** Other calls, which a guard makes. */
  readonly guards: readonly Call[];
}

export interface Call {
  readonly at: number;
  readonly text: string;
  readonly model: string;
  readonly service: 'openai' | 'anthropic';
  readonly layers: readonly Layer[];
  readonly isFetchRecorded: boolean;
  readonly hasId: boolean;
  readonly hasUsage: boolean;
  readonly fails: number;
  /** Turns of the event loop that the model takes. */
  readonly turns: number;
}

/** Calls below a function or without one, in turn or at the same time. Votes are copies of the first call. */
interface Group {
  readonly calls: readonly Call[];
  readonly isConcurrent: boolean;
  readonly isBelowRun: boolean;
}

/** Attributes of the instrumentations: of a request, its content, the id of its response, its tokens. */
const SPANS = [
  {
    kind: (model: string) => ({ 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': model }),
    inputs: (content: string) => ({
      'gen_ai.input.messages': JSON.stringify([{ role: 'user', parts: [{ type: 'text', content }] }]),
    }),
    id: (id: string) => ({ 'gen_ai.response.id': id }),
    tokens: ['gen_ai.usage.input_tokens', 'gen_ai.usage.output_tokens'],
  },
  {
    kind: (model: string) => ({ 'openinference.span.kind': 'LLM', 'llm.model_name': model }),
    inputs: (content: string) => ({
      'llm.input_messages.0.message.role': 'user',
      'llm.input_messages.0.message.content': content,
    }),
    id: (id: string, model: string) => ({
      'output.value': JSON.stringify({ id, model }),
      'output.mime_type': 'application/json',
    }),
    tokens: ['llm.token_count.prompt', 'llm.token_count.completion'],
  },
  {
    kind: (model: string) => ({ 'llm.request.type': 'chat', 'gen_ai.request.model': model }),
    inputs: (content: string) => ({ 'gen_ai.prompt.0.role': 'user', 'gen_ai.prompt.0.content': content }),
    id: (id: string) => ({ 'gen_ai.response.id': id }),
    tokens: ['gen_ai.usage.prompt_tokens', 'gen_ai.usage.completion_tokens'],
  },
] as const;

const idOf = ({ at }: Call) => `chatcmpl-${at}`;
export const tokensOf = ({ at }: Call) => ({ input: 100 + at, output: 1_000 });

function bodyOf({ text, model, at }: Call) {
  return { model, max_tokens: 9, seed: at, messages: [{ role: 'user', content: text }] };
}

function answerOf(call: Call): object {
  const { input, output } = tokensOf(call);
  const id = call.hasId ? { id: idOf(call) } : {};
  const content = `reply ${call.at}`;
  if (call.service === 'anthropic') {
    const usage = { input_tokens: input, output_tokens: output };
    return { ...id, role: 'assistant', content: [{ type: 'text', text: content }], ...(call.hasUsage && { usage }) };
  }
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  return { ...id, choices: [{ message: { role: 'assistant', content } }], ...(call.hasUsage && { usage }) };
}

/** The calls of a plan, those of guards too. */
function callsIn(calls: readonly Call[]): Call[] {
  return calls.flatMap((call) => [call, ...callsIn(call.layers.flatMap(({ guards }) => guards))]);
}

type Ask = (body: object) => Promise<unknown>;
export type IsOn = (recorder: string) => boolean;

export class Performance {
  readonly #calls: ReadonlyMap<number, Call>;
  readonly #isOn: IsOn;
  readonly #provider: BasicTracerProvider;
  readonly #tries = new Map<number, number>();

  constructor(calls: readonly Call[], isOn: IsOn, provider: BasicTracerProvider) {
    this.#calls = new Map(calls.map((call) => [call.at, call]));
    this.#isOn = isOn;
    this.#provider = provider;
  }

  readonly answer = async (_url: unknown, { body }: RequestInit): Promise<Response> => {
    const { seed } = JSON.parse(body as string) as { seed: number };
    const call = this.#calls.get(seed) as Call;
    const tries = this.#tries.get(seed) ?? 0;
    this.#tries.set(seed, tries + 1);
    for (let turn = 0; turn < call.turns; turn++) await soon();
    const headers = { 'content-type': 'application/json' };
    return tries < call.fails
      ? new Response('{"error":{"message":"busy"}}', { status: 500, headers })
      : new Response(JSON.stringify(answerOf(call)), { headers });
  };

  async group({ calls, isConcurrent, isBelowRun }: Group): Promise<void> {
    const perform = () => this.all(calls, isConcurrent);
    await (isBelowRun ? traceable(perform, { name: 'group' })() : perform());
  }

  async all(calls: readonly Call[], isConcurrent: boolean): Promise<void> {
    const perform = async (call: Call): Promise<void> => {
      const ask = call.layers.reduceRight<Ask>(
        (inner, layer, at) => this.#around(call, layer, at, inner),
        this.#sender(call),
      );
      await ask(bodyOf(call)).catch(() => {});
    };
    if (isConcurrent) await Promise.all(calls.map(perform));
    else for (const call of calls) await perform(call);
  }

  /** A client that sends a request again if it fails. */
  #sender(call: Call): Ask {
    const path = call.service === 'openai' ? 'chat/completions' : 'messages';
    return async (body) => {
      const request = this.#isOn(`fetch ${call.at}`) && call.isFetchRecorded ? fetch : this.answer;
      for (let tries = 0; tries < 2; tries++) {
        const init = { method: 'POST', body: JSON.stringify(body) };
        const response = await request(`https://model.test/v1/${path}`, init);
        const answer: unknown = await response.json();
        if (response.ok) return answer;
      }
      throw new Error('no answer');
    };
  }

  #around(call: Call, layer: Layer, at: number, inner: Ask): Ask {
    const { kind, isBefore, isScrubbed, guards } = layer;
    const name = nameOf(call, layer, at);
    if (kind === 'guard') {
      return async (body) => {
        if (isBefore) await this.all(guards, false);
        const answer = inner(body);
        const others = isBefore || this.all(guards, true);
        return answer.finally(() => others);
      };
    }
    if (!this.#isOn(name)) return inner;
    if (kind === 'span') return (body) => this.#inSpan(call, layer, name, () => inner(body));
    if (kind === 'frame') return (body) => traceable(() => inner(body), { name, outputs: () => ({}) })();
    if (kind === 'wrapper' && call.service === 'openai') {
      return (body) => wrapOpenAI({ chat: { completions: { create: inner } } }).chat.completions.create(body);
    }
    if (kind === 'wrapper') return (body) => wrapAnthropic({ messages: { create: inner } }).messages.create(body);
    return traceable(
      async (body) => {
        const answer = await inner(body);
        const { input, output } = tokensOf(call);
        if (layer.hasUsage) currentRun()?.set({ usage: { input_tokens: input, output_tokens: output } });
        if (layer.hasId) currentRun()?.set({ metadata: { response_id: idOf(call) } });
        return answer;
      },
      { name, runType: 'llm', ...(isScrubbed && { onEnd: (run) => run.set({ outputs: { scrubbed: true } }) }) },
    );
  }

  async #inSpan(call: Call, layer: Layer, name: string, inner: () => Promise<unknown>): Promise<unknown> {
    const { scope, isActive, isEarly, isLate, hasInputs, hasId, hasUsage } = layer;
    const { kind, inputs, id, tokens } = SPANS[scope] as (typeof SPANS)[number];
    const start = { ...kind(call.model), ...(hasInputs && inputs(call.text)) };
    const { input, output } = tokensOf(call);
    const end = {
      ...(hasId && id(idOf(call), call.model)),
      ...(hasUsage && { [tokens[0]]: input, [tokens[1]]: output }),
    };
    const span = this.#provider.getTracer(`scope ${scope}`).startSpan(name, isLate ? {} : { attributes: start });
    const finish = (more: Attributes) => span.setAttributes({ ...(isLate && start), ...more }).end();
    const answer = context.with(isActive ? trace.setSpan(context.active(), span) : context.active(), inner);
    try {
      if (isEarly) finish(end);
      const value = await answer;
      if (!isEarly) finish(end);
      return value;
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: 'no answer' });
      finish({});
      throw error;
    }
  }
}

const nameOf = ({ at }: Call, { kind }: Layer, index: number) =>
  kind === 'wrapper' ? `wrapper ${at}` : `${kind} ${at}.${index}`;

export interface Recorder {
  readonly name: string;
  readonly hasUsage: boolean;
}

/** Returns the runs that must record a call: all recorders except the requests that a wrapped method itself sends. */
export function recordersOf(call: Call): Recorder[] {
  const { layers, fails, hasUsage, isFetchRecorded } = call;
  const isAnswered = fails < 2;
  const recorders = layers.flatMap((layer, at): Recorder[] => {
    if (layer.kind === 'guard') return [];
    const isCounted = layer.kind === 'wrapper' ? hasUsage : layer.kind !== 'frame' && layer.hasUsage;
    return [{ name: nameOf(call, layer, at), hasUsage: isCounted && isAnswered }];
  });
  const around = layers.findLast(({ kind, isActive }) => kind !== 'guard' && (kind !== 'span' || isActive));
  const requests = isFetchRecorded && around?.kind !== 'wrapper' ? Math.min(fails + 1, 2) : 0;
  const own = Array.from({ length: requests }, (_, at) => ({
    name: `fetch ${call.at} #${at + 1}`,
    hasUsage: hasUsage && at === fails,
  }));
  return [...recorders, ...own];
}

export interface Plan {
  readonly groups: readonly Group[];
  readonly isMasked: boolean;
  /** Whether starts are sent. */
  readonly arePosted: boolean;
}

export const callsOf = ({ groups }: Plan) => callsIn(groups.flatMap(({ calls }) => calls));

type RawGroup = Group & { readonly votes: number; readonly isOneOther: boolean };

/**
 * Numbers calls and gives each its own text, but votes that of the first call. With `isEvident`, all records of a call have
 * its text, and those of concurrent votes its id.
 */
function numbered(groups: readonly RawGroup[], isEvident: boolean): Group[] {
  let count = 0;
  const fixed = (call: Call, hasIds: boolean): Call => {
    const { layers, fails } = call;
    const isBeside = layers.some(({ kind, isActive }) => kind === 'span' && !isActive);
    const kept = layers.filter(({ kind }) => kind !== 'frame' || !isEvident || !isBeside);
    return {
      ...call,
      text: `question ${++count}`,
      hasId: call.hasId || hasIds,
      layers: kept.map((layer, at) => {
        const isDelayed = fails > 0 || kept.slice(at).some(({ kind }) => kind === 'guard');
        return {
          ...layer,
          isEarly: layer.isEarly && !isDelayed && (layer.isActive || hasIds || !isEvident),
          hasInputs: layer.hasInputs || isEvident,
          hasId: layer.hasId || hasIds,
          hasUsage: layer.hasUsage && fails < 2,
          guards: layer.guards.map((guard) => fixed(guard, hasIds)),
        };
      }),
    };
  };
  let at = 0;
  const copied = (call: Call): Call => ({
    ...call,
    at: ++at,
    layers: call.layers.map((layer) => ({ ...layer, guards: layer.guards.map(copied) })),
  });
  return groups.map(({ calls, votes, isOneOther, isConcurrent, isBelowRun }) => {
    const haveIds = isEvident && votes > 0 && isConcurrent;
    const all = calls.map((call, index) => fixed(call, haveIds && index === 0));
    const copies = Array.from({ length: votes }, (_, index) => {
      const first = all[0] as Call;
      return isOneOther && index === 0 ? otherCall(first, haveIds) : first;
    });
    return { calls: [...all, ...copies].map(copied), isConcurrent, isBelowRun: isBelowRun || isEvident };
  });
}

/** Returns another call with the same text, of which other records tell. Ids or models tell them apart if all have some. */
function otherCall(call: Call, haveIds: boolean): Call {
  const { model, layers, fails, isFetchRecorded } = call;
  const areTold = haveIds && fails === 0;
  const other = areTold ? call : { ...call, model: `${model}-mini` };
  if (!areTold && layers.some(({ kind }) => kind === 'own')) return other;
  const others = layers.slice(1).map((layer) => ({ ...layer, isEarly: false }));
  return { ...other, layers: others.reverse(), isFetchRecorded: !isFetchRecorded };
}

const flag = fc.boolean();

function callArbitrary(depth: number): fc.Arbitrary<Call> {
  const rest = {
    scope: fc.nat(2),
    ...{ isActive: flag, isEarly: flag, isLate: flag, isBefore: flag, isScrubbed: flag },
    ...{ hasInputs: flag, hasId: flag, hasUsage: flag },
  };
  const kind = fc.constantFrom('span', 'span', 'span', 'wrapper', 'own', 'frame');
  const layer: fc.Arbitrary<Layer> = fc.record({ kind, ...rest, guards: fc.constant([]) });
  const guard = (calls: fc.Arbitrary<Call>): fc.Arbitrary<Layer> =>
    fc.record({ kind: fc.constant('guard'), ...rest, guards: fc.array(calls, { minLength: 1, maxLength: 2 }) });
  const layers = depth === 0 ? layer : fc.oneof(layer, layer, layer, layer, layer, guard(callArbitrary(depth - 1)));
  return fc.record({
    ...{ at: fc.constant(0), text: fc.constant('') },
    model: fc.constantFrom('gpt-4o', 'claude'),
    service: fc.constantFrom('openai', 'anthropic'),
    layers: fc.uniqueArray(layers, {
      maxLength: 5,
      selector: (one) => (one.kind === 'span' ? `span ${one.scope}` : one.kind),
    }),
    isFetchRecorded: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: flag }),
    ...{ hasId: flag, hasUsage: flag },
    fails: fc.constantFrom(0, 0, 0, 1, 2),
    turns: fc.nat(3),
  });
}

export function planArbitrary(isEvident = false): fc.Arbitrary<Plan> {
  const group: fc.Arbitrary<RawGroup> = fc.record({
    calls: fc.array(callArbitrary(1), { minLength: 1, maxLength: 3 }),
    ...{ votes: fc.nat(2), isOneOther: flag, isConcurrent: flag, isBelowRun: flag },
  });
  return fc.record({
    groups: fc.array(group, { minLength: 1, maxLength: 2 }).map((groups) => numbered(groups, isEvident)),
    isMasked: isEvident ? fc.constant(false) : flag,
    arePosted: flag,
  });
}
