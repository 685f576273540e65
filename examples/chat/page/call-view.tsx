import type { JSX } from 'preact';
import { beginningOf } from './beginning.ts';
import { callStatus } from './call-status.ts';
import type { Conversation, ToolCall } from './conversation.ts';
import { argumentsOf, type Block, type Message } from './message.ts';
import { stringOf } from './protocol.ts';
import { type Status, StatusMark } from './status-mark.tsx';
import { LongText } from './text.tsx';
import { visible } from './visible-text.ts';

type Call = Extract<Block, { kind: 'call' }>;

/** Of what it is called with, what stands beside its name. */
const GIST_CHARS = 80;

/** What a message calls: a tool, or a subagent, whose work is shown as it happens, message by message. */
export function CallView({
  call,
  conversation,
  isLive,
  children,
}: {
  call: Call;
  conversation: Conversation;
  isLive: boolean;
  children: (message: Message) => JSX.Element;
}): JSX.Element {
  const known = conversation.calls.get(call.id);
  const status = callStatus(known, conversation, isLive);
  const input = known?.input ?? call.input;
  return (known?.name || call.name) === 'task' ? (
    <SubagentCard id={call.id} input={input} status={status} known={known} conversation={conversation}>
      {children}
    </SubagentCard>
  ) : (
    <details class="call" open={status === 'failed'}>
      <summary>
        <span class="call-name">{visible(call.name || known?.name || 'tool')}</span>
        <bdi class="call-gist">{visible(gistOf(known?.doneWith ?? input))}</bdi>
        <StatusMark status={status} />
      </summary>
      <p class="label">Input</p>
      <Payload text={inputText(input)} label="Input of the tool" />
      {known !== undefined && known.output !== '' && (
        <>
          <p class="label">{status === 'failed' ? 'Error' : 'Output'}</p>
          <Payload text={known.output} label="Output of the tool" />
        </>
      )}
    </details>
  );
}

function SubagentCard({
  id,
  input,
  status,
  known,
  conversation,
  children,
}: {
  id: string;
  input: unknown;
  status: Status;
  known: ToolCall | undefined;
  conversation: Conversation;
  children: (message: Message) => JSX.Element;
}): JSX.Element {
  const { subagent_type, description } = argumentsOf(input);
  const name = visible(stringOf(subagent_type) ?? 'subagent');
  const task = stringOf(description) ?? '';
  const messages = (conversation.agents.get(id) ?? []).flatMap((one) => conversation.messages.get(one) ?? []);
  return (
    <article class={`subagent subagent-${status}`} aria-label={`Subagent ${name}`}>
      {/* Open while it works, so that it can be watched; what it has found is in the answer then. */}
      <details open={status !== 'complete'}>
        <summary>
          <strong>{name}</strong>
          <bdi class="call-gist">{visible(beginningOf(task, GIST_CHARS))}</bdi>
          <StatusMark status={status} />
        </summary>
        {task.length > GIST_CHARS && (
          <p class="note plain" dir="auto">
            <LongText value={task} />
          </p>
        )}
        {messages.map(children)}
        {messages.length === 0 && status === 'complete' && (
          <p class="plain" dir="auto">
            <LongText value={known?.output ?? ''} />
          </p>
        )}
        {status === 'failed' && (
          <p class="problem plain">
            <LongText value={known?.output ?? ''} />
          </p>
        )}
      </details>
    </article>
  );
}

function Payload({ text, label }: { text: string; label: string }): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: What scrolls has to be reached by the keyboard.
    <pre tabIndex={0} role="group" aria-label={label}>
      <LongText value={text} />
    </pre>
  );
}

function inputText(input: unknown): string {
  return typeof input === 'string' ? input : (JSON.stringify(input, null, 2) ?? '');
}

/** What is called with one value is told of by it. */
function gistOf(input: unknown): string {
  const values = Object.values(argumentsOf(input));
  const [only] = values;
  return values.length === 1 && typeof only === 'string' ? beginningOf(only, GIST_CHARS) : '';
}
