import { clock } from '../../base/clock.ts';
import { guard } from '../../base/guard.ts';
import { type Collector, StreamRecorder } from '../../instrument/results/recorder.ts';
import { errorLine } from '../../payload/errors.ts';
import { defined, type Fields, fieldsOf, listOf, numberOf, textOf } from '../../payload/fields.ts';
import { metadataOfUsage } from '../../payload/usage.ts';
import { prepareRun } from '../../run/begin.ts';
import { OpenRuns, type OpenStep } from '../../run/calls/open-runs.ts';
import { beginRun, type CallDescription, type Run } from '../../run/run.ts';
import type { Fold } from '../../services/answer.ts';
import { messageCall } from '../../services/anthropic/calls.ts';
import { messageFold } from '../../services/anthropic/stream.ts';
import { agentUsage } from '../../services/anthropic/usage.ts';
import { copyOf } from '../../services/deltas.ts';
import { recordAnswer } from '../answer-stream.ts';

export const SOURCE = 'claude-agent';
/** Maximum number of prompts in the inputs of a query. Later prompts are only in the model calls. */
const PROMPTS_MAX = 1_000;

/** The main conversation, or that of a subagent. */
interface Conversation {
  /** The messages since the last compaction. The context of the model limits their size. */
  messages: Fields[];
  /** When the latest message to the model was seen. */
  seenUs: number;
  turn?: Turn | undefined;
}

/** A tool and the conversation of the subagent that it has started. The main conversation has the id `null` and no run. */
type Step = OpenStep<unknown, Conversation>;

/** One model call. The SDK sends a message for each content block, and all of them have the same message id. */
interface Turn {
  readonly id: unknown;
  readonly run: Run;
  readonly fold: Fold;
  /** The message in the conversation, which gets its content when the turn ends. */
  readonly message: Fields;
  /** Whether the SDK also sends the events of the response. */
  readonly isStreamed: boolean;
  blocks: number;
  endMs: number;
  hasToken?: true;
  error?: string | undefined;
}

/** The runs of all open tools, by the id of the `tool_use` block. */
export const openTools: Map<unknown, Run> = new Map();

/** Records the messages of one query. Model calls and tools become runs below the query, or below their subagent. */
export class QueryRecorder extends StreamRecorder {
  readonly #steps = new OpenRuns<unknown, Conversation>(SOURCE);
  readonly #main: Step;
  readonly #prompts: Fields[] = [];
  #outputTokens = 0;
  /** The outcome of the latest turn. Undefined while a turn is open, and after an interruption. */
  #outcome: { readonly error: string | undefined } | undefined;
  #isInterrupted = false;
  /** Whether the application has closed the query, or has interrupted it since the latest result. */
  isStopped = false;

  constructor(run: Run) {
    super(run);
    this.#main = this.#steps.add({ id: null, run: undefined, below: run.context, state: conversationWith([]) });
  }

  prompted({ message }: Fields): void {
    const prompt = copyOf(fieldsOf(message));
    this.#main.state.seenUs = clock.nowUs();
    this.#main.state.messages.push(prompt);
    if (this.#prompts.length < PROMPTS_MAX) this.#prompts.push(prompt);
    // Later prompts are added once, when the query ends.
    if (this.#prompts.length === 1) this.#setInputs();
  }

  #setInputs(): void {
    this.run.set({ inputs: { messages: this.#prompts } });
  }

  override end(): void {
    const isStopped = this.#isInterrupted || this.isStopped || this.run.signal?.deref()?.aborted === true;
    if (isStopped || this.#outcome !== undefined) this.cancel();
    else if (this.#prompts.length + this.#main.state.messages.length === 0) super.end();
    else this.abandon('the messages ended without a result');
  }

  /** An application may leave the loop after the result. */
  override cancel(): void {
    if (this.#outcome === undefined) {
      this.#endOpen((run) => run.cancel());
      super.cancel();
    } else super.end();
  }

  override fail(error: unknown): void {
    if (this.#isInterrupted) this.cancel();
    this.#endOpen((run) => run.fail(error));
    super.fail(error);
  }

  protected override collect(): Collector {
    return {
      push: (message) => {
        guard(SOURCE, () => this.#add(fieldsOf(message)));
        return false;
      },
      record: () => {
        this.#endOpen((run) => run.interrupt('the query ended first'));
        return this.#outcome?.error;
      },
    };
  }

  #add(message: Fields): void {
    const { type, subtype, parent_tool_use_id: parent } = message;
    const step = this.#stepOf(parent);
    if (type === 'assistant') this.#addBlocks(step, message);
    else if (type === 'stream_event') this.#addEvent(step, fieldsOf(message.event));
    else if (type === 'user' && message.isReplay !== true) this.#addUser(step, message);
    else if (type === 'result') this.#addResult(message);
    else if (subtype === 'init') this.#addSession(message);
    else if (subtype === 'task_notification') {
      this.#endTool({ ...message, content: message.summary, is_error: message.status !== 'completed' });
    } else if (subtype === 'compact_boundary') {
      this.run.event('compaction', fieldsOf(message.compact_metadata));
      step.state.messages = [];
    }
  }

  /** Returns the step that a message belongs to. A subagent may go on after its tool has ended, without a run. */
  #stepOf(id: unknown): Step {
    const known = this.#steps.find(id) ?? (this.#steps.has(id) ? undefined : this.#main);
    return known ?? this.#steps.add({ id, run: undefined, below: this.#steps.below(id), state: conversationWith([]) });
  }

  #addSession({ session_id: thread_id, model: ls_model_name }: Fields): void {
    const isInThread = this.run.context.metadata?.has('thread_id') === true;
    this.run.set({ metadata: { ls_model_name, ...(!isInThread && { thread_id }) } });
  }

  #addBlocks(step: Step, { message: given, error }: Fields): void {
    const message = fieldsOf(given);
    // The program has written such a message itself, unless it reports why a request failed.
    if (message.model === '<synthetic>' && error === undefined) return;
    const { content, stop_reason, usage } = message;
    const turn = this.#turnOf(step, message, false);
    turn.endMs = clock.nowUs() / 1_000;
    if (error !== undefined) turn.error = errorLine(error, fieldsOf(listOf(content)[0]).text);
    for (const block of listOf(content).map(fieldsOf)) {
      const start = { type: 'content_block_start', index: turn.blocks++, content_block: block };
      if (!turn.isStreamed) turn.fold.add(start, false);
      this.#addTool(step, block);
      this.#endTool(block);
    }
    if (!turn.isStreamed) turn.fold.add({ type: 'message_delta', delta: { stop_reason }, usage }, false);
  }

  #addEvent(step: Step, event: Fields): void {
    if (event.type === 'message_start') this.#turnOf(step, fieldsOf(event.message), true);
    const { turn } = step.state;
    if (turn?.isStreamed !== true) return;
    turn.endMs = clock.nowUs() / 1_000;
    const characters = turn.fold.add(event, false);
    if (characters > 0 && turn.hasToken === undefined) {
      turn.hasToken = true;
      turn.run.event('new_token');
    }
  }

  #turnOf(step: Step, message: Fields, isStreamed: boolean): Turn {
    const { id, model } = message;
    const { turn: open, messages, seenUs: startUs } = step.state;
    if (open !== undefined && open.id === id) return open;
    this.#endTurn(step);
    if (step === this.#main) this.#outcome = undefined;
    const { inputs, ...description } = messageCall.describe({ model, messages }, 'anthropic') as CallDescription;
    const options = { name: messageCall.name, runType: messageCall.runType, startUs, source: SOURCE };
    const start = prepareRun(options, step.below, inputs, { inputs: () => inputs });
    const run = beginRun(start, { ...description, signal: this.run.signal?.deref() });
    const turn: Turn = {
      ...{ id, run, isStreamed, fold: messageFold(), blocks: 0, endMs: clock.nowUs() / 1_000 },
      message: { role: 'assistant', content: [] },
    };
    turn.fold.add({ type: 'message_start', message: { ...message, content: [] } }, false);
    step.state.messages.push(turn.message);
    step.state.turn = turn;
    return turn;
  }

  #endTurn({ state }: Step, end?: (run: Run) => void): void {
    const { turn } = state;
    if (turn === undefined) return;
    state.turn = undefined;
    const { run, fold, message, error, endMs: endTime } = turn;
    const answer = fieldsOf(fold.result());
    message.content = answer.content;
    this.#outputTokens += numberOf(fieldsOf(answer.usage).output_tokens) ?? 0;
    recordAnswer(run, () => messageCall.read(answer));
    if (error !== undefined) run.fail(error, { endTime });
    else if (end !== undefined) end(run);
    else run.end(undefined, { endTime });
  }

  #addUser({ state }: Step, { message, tool_use_result }: Fields): void {
    state.seenUs = clock.nowUs();
    state.messages.push(copyOf(fieldsOf(message)));
    for (const block of listOf(fieldsOf(message).content)) this.#endTool(fieldsOf(block), fieldsOf(tool_use_result));
  }

  #addTool({ id: parentId }: Step, { type, id, name, input: given }: Fields): void {
    if (textOf(type)?.endsWith('tool_use') !== true || typeof id !== 'string' || this.#steps.has(id)) return;
    const inputs = fieldsOf(given);
    const { prompt: content } = inputs;
    const options = { name: textOf(name) ?? 'tool', runType: 'tool', source: SOURCE };
    const step = this.#steps.start(id, parentId, options, () => ({
      state: conversationWith(content === undefined ? [] : [{ role: 'user', content }]),
      ...{ inputs, call: { inputs: () => inputs } },
      description: { metadata: { tool_call_id: id }, signal: this.run.signal?.deref() },
    }));
    if (step?.run !== undefined) openTools.set(id, step.run);
  }

  /** Ends a tool with its result. A subagent in the background ends later, with a notification. */
  #endTool({ tool_use_id: id, content: output, is_error }: Fields, result?: Fields): void {
    if (result?.isAsync === true) return;
    this.#close(id, output, (run) => {
      if (is_error !== true) run.end();
      else run.fail(run.capture.hideOutputs ? 'the tool failed' : (textOf(output) ?? JSON.stringify(output)));
    });
  }

  #close(id: unknown, output: unknown, end: (run: Run) => void): void {
    this.#steps.end(this.#steps.find(id), (step) => {
      const { run } = step;
      this.#endTurn(step);
      if (run === undefined) return;
      openTools.delete(id);
      if (output !== undefined) run.keepResult({ output });
      end(run);
    });
  }

  #addResult(message: Fields): void {
    const { result, structured_output, errors, subtype, is_error, terminal_reason, stop_reason } = message;
    const usage = agentUsage(message);
    this.#completeTurn(stop_reason, usage?.output_tokens ?? 0);
    this.run.set({ outputs: defined({ result, structured_output }), metadata: metadataOfUsage(usage) });
    const texts = listOf(errors).map((error) => textOf(error));
    const error = subtype === 'success' ? textOf(result) : errorLine(subtype, texts.join('\n') || undefined);
    this.isStopped = false;
    this.#isInterrupted = textOf(terminal_reason)?.startsWith('aborted') === true;
    this.#outcome = this.#isInterrupted ? undefined : { error: is_error === true ? error : undefined };
  }

  /**
   * Ends the last turn. Without streaming, the SDK reports the output tokens and the stop reason only with the result, and
   * the tokens for all turns together. The last turn gets the tokens that the other turns do not have.
   */
  #completeTurn(stop_reason: unknown, total: number): void {
    const { turn } = this.#main.state;
    const answer = fieldsOf(turn?.fold.result());
    if (turn?.isStreamed === false && !answer.stop_reason) {
      const usage = { output_tokens: total - this.#outputTokens };
      turn.fold.add({ type: 'message_delta', delta: { stop_reason }, usage }, false);
    }
    this.#endTurn(this.#main);
  }

  #endOpen(end: (run: Run) => void): void {
    if (this.#prompts.length > 1) this.#setInputs();
    const open = this.#steps.all().toReversed();
    for (const step of open) this.#endTurn(step, end);
    for (const { id } of open) this.#close(id, undefined, end);
  }
}

function conversationWith(messages: Fields[]): Conversation {
  return { messages, seenUs: clock.nowUs() };
}
