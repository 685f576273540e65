import type { ComponentChildren, JSX } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { fieldsOf, parsedJson } from '../../payload/fields.ts';
import type { PayloadField, RunDetails } from '../../receiver/domain/run-view.ts';
import type { TreeRun } from '../../receiver/domain/trace/derived-tools.ts';
import { parametersOf, toolsOf } from '../../services/call-settings.ts';
import { messagesOfInputs } from '../../services/conversation.ts';
import type { Message } from '../../services/message.ts';
import { api } from '../data/api.ts';
import { useLive } from '../data/live-value.ts';
import { usePayload } from '../data/payloads.ts';
import { Button, Paged, Pending } from '../elements/controls.tsx';
import { latencyOf, plural } from '../elements/figures.ts';
import { StatusMark } from '../elements/icon.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { ConversationView, Parts } from '../payload/conversation-view.tsx';
import { documentsOf } from '../payload/documents.ts';
import { JsonTree, printed } from '../payload/json-tree.tsx';
import { messagesOfTurn } from '../threads/turn-messages.ts';
import { runKind } from '../trace/run-tree.ts';
import type { TraceModel } from '../trace/trace-model.ts';
import { DerivedMark } from '../trace/trace-tree.tsx';
import { FailureView } from './failure.tsx';
import { answerFacts, formsOf, MarkdownBox, PayloadSection, useVisible } from './payload-section.tsx';

const STEPS_PAGE = 20;
/** Maximum length of arguments and of a result on the line of a step. The panel of the step shows all of them. */
const LINE_LENGTH = 400;

/** Shows a trace as a conversation, with what was asked, done and answered, or its payloads as JSON if `isJson`. */
export function RunConversation(props: { run: RunDetails; model: TraceModel; isJson: boolean }): JSX.Element {
  const { run, model, isJson } = props;
  const element = useRef<HTMLDivElement>(null);
  const isVisible = useVisible(element);
  const { asked_run_id = run.id, answered_run_id = run.id } = model.summary.value.value?.trace ?? {};
  const asked = useDetails(asked_run_id, run);
  const answered = useDetails(answered_run_id, run);
  const steps = useMemo(() => stepsOf(model), [model.tree.value, model.failed.value]);
  const json = (
    <>
      {asked && <PayloadSection run={asked} field="inputs" isJson />}
      {answered && <PayloadSection run={answered} field="outputs" isJson />}
    </>
  );
  const talk = (
    <>
      {asked && hasContent(asked, 'inputs') && <Asked run={asked} isVisible={isVisible} />}
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
      {answered && hasContent(answered, 'outputs') && <Answered run={answered} root={run} isVisible={isVisible} />}
      {run.status === 'pending' && <p class="loading">No answer yet.</p>}
    </>
  );
  return <div ref={element}>{isJson ? json : talk}</div>;
}

/** Returns the tools that were called, the model calls that failed, and the last failure, without those below others. */
function stepsOf({ tree, failed }: TraceModel): TreeRun[] {
  const steps: TreeRun[] = [];
  const { branches } = tree.value;
  for (let index = 1; index < branches.length; ) {
    const { run, end } = branches[index] as (typeof branches)[number];
    const isFailure = run.id === failed.value?.id || (runKind(run) === 'model' && run.status === 'error');
    const isStep = run.same_call_as === undefined && (isFailure || runKind(run) === 'tool');
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

function Asked({ run, isVisible }: { run: RunDetails; isVisible: boolean }): JSX.Element {
  const { value: inputs, problem } = usePayload(run, 'inputs', isVisible);
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

function Answered(props: { run: RunDetails; root: RunDetails; isVisible: boolean }): JSX.Element {
  const { run, root, isVisible } = props;
  const { value: outputs, problem } = usePayload(run, 'outputs', isVisible);
  const messages = messagesOfTurn({}, outputs);
  const isText = ({ kind }: Message['parts'][number]): boolean => kind !== 'call' && kind !== 'result';
  const texts = messages.filter(({ role, parts }) => role !== 'tool' && parts.some(isText)).slice(-1);
  const isUnknown = messages.every(({ parts }) => parts.every(({ kind }) => kind === 'other'));
  const status = root.extra?.metadata?.['http.response.status_code'];
  return (
    <>
      <Turn title="answered">
        {outputs === undefined && <Pending problem={problem} note="Loading…" />}
        {isUnknown ? (
          outputs !== undefined && formsOf(run, 'outputs', outputs)[0]?.render(run)
        ) : (
          <Said messages={texts.length > 0 ? texts : messages} run={run} />
        )}
        <MarkdownBox />
      </Turn>
      <details class="section">
        <summary>
          Response{' '}
          <span class="note">
            {visibleText([...(status === undefined ? [] : [status]), ...answerFacts(outputs)].join(', '))}
          </span>
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
function Step({ run, model, isBrief }: { run: TreeRun; model: TraceModel; isBrief: boolean }): JSX.Element {
  const element = useRef<HTMLLIElement>(null);
  const isVisible = useVisible(element);
  const { derived } = run;
  const key = isVisible && derived === undefined ? `${run.id} ${run.end_time}` : undefined;
  const { value: details } = useLive(key, (signal) => api.run(run.id, signal));
  const { value: inputs } = usePayload(details, 'inputs', isVisible && runKind(run) === 'tool');
  const { value: outputs } = usePayload(details, 'outputs', isVisible);
  const error = details?.error ?? run.error;
  const isFailure = derived === undefined && run.status === 'error';
  const asked = derived === undefined ? inputs : parsedJson(derived.arguments);
  const result = derived === undefined ? outputs : parsedJson(derived.result);
  return (
    <li ref={element} class={run.status === 'error' ? 'step failed' : 'step'}>
      <div class="step-line">
        {(derived === undefined || derived.is_error) && <StatusMark status={run.status} isShort />}
        <code>
          <Button text={visibleText(run.name)} class="" title="Show this run" onClick={() => model.select(run.id)} />
          {asked !== undefined &&
            `(${visibleText(printed(contentOf(asked), LINE_LENGTH).replace(/^\{ ?| ?\}$/g, ''))})`}
        </code>
        <span class="space" />
        {derived !== undefined && <DerivedMark />}
        <span class="note small">{(derived === undefined ? '' : '≤ ') + latencyOf(run)}</span>
      </div>
      {result !== undefined && !isFailure && <code class="result">→ {resultOf(result)}</code>}
      {isFailure && error !== undefined && <FailureView error={error} traceId={model.id} isBrief={isBrief} />}
    </li>
  );
}

/** Returns the only value of a payload, or the payload. */
function contentOf(payload: unknown): unknown {
  const values = Object.values(fieldsOf(payload));
  return values.length === 1 ? values[0] : payload;
}

function resultOf(outputs: unknown): string {
  const documents = documentsOf(outputs);
  if (documents !== undefined) {
    const titles = documents.map(({ title, text }) => title ?? text).join(', ');
    return visibleText(`${plural(documents.length, 'document')}: ${titles}`.slice(0, LINE_LENGTH));
  }
  const value = contentOf(outputs);
  return visibleText(typeof value === 'string' ? value.slice(0, LINE_LENGTH) : printed(value, LINE_LENGTH));
}
