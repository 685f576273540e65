import type { ComponentChildren, JSX } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { fieldsOf, listOf } from '../../payload/fields.ts';
import type { PayloadField, RunDetails, RunOutline } from '../../receiver/domain/run-view.ts';
import { parametersOf, toolsOf } from '../../services/call-settings.ts';
import { messagesOfInputs } from '../../services/conversation.ts';
import type { Message } from '../../services/message.ts';
import { api } from '../data/api.ts';
import { useLive } from '../data/live-value.ts';
import { usePayload } from '../data/payloads.ts';
import { Paged, Pending } from '../elements/controls.tsx';
import { latencyOf, plural } from '../elements/figures.ts';
import { StatusMark } from '../elements/icon.tsx';
import { visible } from '../elements/visible-text.ts';
import { ConversationView, Parts } from '../payload/conversation-view.tsx';
import { documentsOf } from '../payload/documents.ts';
import { JsonTree, printed } from '../payload/json-tree.tsx';
import { messagesOfTurn } from '../threads/turn-messages.ts';
import { kindOf } from '../trace/run-tree.ts';
import type { TraceModel } from '../trace/trace-model.ts';
import { FailureView } from './failure.tsx';
import { MarkdownBox, PayloadSection, useVisible } from './payload-section.tsx';

const STEPS_PAGE = 20;
/** Maximum length of arguments and of a result on the line of a step. The panel of the step shows all of them. */
const LINE_LENGTH = 400;

/**
 * Shows a trace as a conversation: what was asked, what the program did, and what it answered. If `isJson` is set, shows the
 * inputs and the outputs as JSON.
 */
export function RunConversation(props: { run: RunDetails; model: TraceModel; isJson: boolean }): JSX.Element {
  const { run, model, isJson } = props;
  const { asked_run_id = run.id, answered_run_id = run.id } = model.summary.value.value?.trace ?? {};
  const asked = useDetails(asked_run_id, run);
  const answered = useDetails(answered_run_id, run);
  const steps = useMemo(() => stepsOf(model), [model.tree.value]);
  if (isJson) {
    return (
      <>
        {asked && <PayloadSection run={asked} field="inputs" isJson />}
        {answered && <PayloadSection run={answered} field="outputs" isJson />}
      </>
    );
  }
  return (
    <>
      {asked && hasContent(asked, 'inputs') && <Asked run={asked} />}
      {steps.length > 0 && (
        <Turn title="did">
          <ol class="steps">
            <Paged items={steps} page={STEPS_PAGE}>
              {(step) => <Step key={step.id} run={step} model={model} isBrief={run.error !== undefined} />}
            </Paged>
          </ol>
        </Turn>
      )}
      {run.error !== undefined && (
        <Turn title="failed">
          <FailureView error={run.error} traceId={model.id} />
        </Turn>
      )}
      {answered && hasContent(answered, 'outputs') && <Answered run={answered} root={run} />}
      {run.status === 'pending' && <p class="loading">No answer yet.</p>}
    </>
  );
}

/** Returns the tools that were called, and the model calls that failed, without those below other tools. */
function stepsOf({ tree }: TraceModel): RunOutline[] {
  const steps: RunOutline[] = [];
  const { branches } = tree.value;
  for (let index = 1; index < branches.length; ) {
    const { run, end } = branches[index] as (typeof branches)[number];
    const kind = kindOf(run);
    const isStep = run.same_call_as === undefined && (kind === 'tool' || (kind === 'model' && run.status === 'error'));
    if (isStep) steps.push(run);
    index = isStep ? end : index + 1;
  }
  return steps;
}

/** Reads the details of a run, unless they are there. */
function useDetails(id: string, known: RunDetails): RunDetails | undefined {
  const read = (signal: AbortSignal): Promise<RunDetails> => api.run(id, signal);
  const { value } = useLive(id === known.id ? undefined : `${id} ${known.end_time}`, read);
  return id === known.id ? known : value;
}

function Turn({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <section class="section talk" aria-label={title}>
      <h3>{title}</h3>
      <div>{children}</div>
    </section>
  );
}

function Asked({ run }: { run: RunDetails }): JSX.Element {
  const { value: inputs, problem } = usePayload(run, 'inputs', true);
  const all = messagesOfInputs(inputs) ?? [];
  const start = all.findLastIndex(({ role }) => role === 'assistant') + 1;
  const others = all.filter(({ role }, index) => index < start || role === 'system');
  const system = others.flatMap(({ role, parts }) => (role === 'system' ? parts : []));
  const words = system.map((part) => ('text' in part ? part.text : '')).join(' ');
  const tools = toolsOf(parametersOf({ ...run, inputs })).length;
  const folded = [
    words !== '' && `system prompt, ${plural(words.trim().split(/\s+/).length, 'word')}`,
    start > 0 && plural(start, 'earlier message'),
    tools > 0 && plural(tools, 'tool'),
  ].filter(Boolean);
  return (
    <Turn title="asked">
      {inputs === undefined && <Pending problem={problem} note="Loading…" />}
      <Said messages={messagesOfTurn(inputs, {})} run={run} />
      {folded.length > 0 && (
        <details class="small">
          <summary>{folded.join(' · ')}</summary>
          <ConversationView messages={others} run={run} />
        </details>
      )}
    </Turn>
  );
}

function Answered({ run, root }: { run: RunDetails; root: RunDetails }): JSX.Element {
  const { value: outputs, problem } = usePayload(run, 'outputs', true);
  const messages = messagesOfTurn({}, outputs);
  const isText = ({ kind }: Message['parts'][number]): boolean => kind !== 'call' && kind !== 'result';
  const texts = messages.filter(({ role, parts }) => role !== 'tool' && parts.some(isText)).slice(-1);
  const { finishReason, steps } = fieldsOf(outputs);
  const count = typeof steps === 'number' ? steps : listOf(steps).length;
  const status = fieldsOf(root.extra?.metadata)['http.response.status_code'];
  const facts = [
    status,
    count > 0 && plural(count, 'step'),
    finishReason && `finish reason ${printed(finishReason, 80)}`,
  ];
  return (
    <>
      <Turn title="answered">
        {outputs === undefined && <Pending problem={problem} note="Loading…" />}
        <Said messages={texts.length > 0 ? texts : messages} run={run} />
        <MarkdownBox />
      </Turn>
      <details class="section">
        <summary>
          Response <span class="note">{visible(facts.filter(Boolean).join(', '))}</span>
        </summary>
        <JsonTree value={outputs} path="$.outputs" />
      </details>
    </>
  );
}

/** Returns whether a payload is there and not `{}`. */
function hasContent({ payload_sizes: sizes }: RunDetails, field: PayloadField): boolean {
  return (sizes[field] ?? 0) > 2;
}

function Said({ messages, run }: { messages: readonly Message[]; run: RunDetails }): JSX.Element {
  return (
    <div class="said parts">
      {messages.map(({ parts }, index) => (
        <Parts key={index} parts={parts} run={run} />
      ))}
    </div>
  );
}

/** A step with its arguments, and its result or its failure. Reads them when the step is near the visible area. */
function Step({ run, model, isBrief }: { run: RunOutline; model: TraceModel; isBrief: boolean }): JSX.Element {
  const element = useRef<HTMLLIElement>(null);
  const isVisible = useVisible(element);
  const key = isVisible ? `${run.id} ${run.end_time}` : undefined;
  const { value: details } = useLive(key, (signal) => api.run(run.id, signal));
  const { value: inputs } = usePayload(details, 'inputs', isVisible && kindOf(run) === 'tool');
  const { value: outputs } = usePayload(details, 'outputs', isVisible);
  const error = details?.error ?? run.error;
  return (
    <li ref={element} class={run.status === 'error' ? 'step failed' : 'step'}>
      <div class="step-line">
        <StatusMark status={run.status} isShort />
        <code>
          <button type="button" title="Show this run" onClick={() => model.select(run.id)}>
            {visible(run.name)}
          </button>
          {inputs !== undefined && `(${argumentsOf(inputs)})`}
        </code>
        <span class="space" />
        <span class="note small">{latencyOf(run)}</span>
      </div>
      {run.status === 'error' && error !== undefined ? (
        <FailureView error={error} traceId={model.id} isBrief={isBrief} />
      ) : (
        outputs !== undefined && <code class="result">→ {resultOf(outputs)}</code>
      )}
    </li>
  );
}

function argumentsOf(inputs: unknown): string {
  const [only, ...others] = Object.values(fieldsOf(inputs));
  const text = printed(others.length === 0 ? only : inputs, LINE_LENGTH);
  return visible(text.replace(/^\{ | \}$/g, ''));
}

function resultOf(outputs: unknown): string {
  const documents = documentsOf(outputs);
  if (documents !== undefined) {
    const titles = documents.map(({ title, text }) => title ?? text).join(', ');
    return visible(`${plural(documents.length, 'document')}: ${titles}`.slice(0, LINE_LENGTH));
  }
  const [only, ...others] = Object.values(fieldsOf(outputs));
  const value = others.length === 0 ? only : outputs;
  return visible(typeof value === 'string' ? value.slice(0, LINE_LENGTH) : printed(value, LINE_LENGTH));
}
