import type { JSX } from 'preact';
import { Icon } from '../parts/icon.tsx';
import { Markdown, Picture } from '../parts/markdown.tsx';
import { beginningOf, LongText, visible } from '../parts/text.tsx';
import { fieldsOf, stringOf } from '../state/client.ts';
import { type Conversation, callStatus, type ToolCall } from '../state/conversation.ts';
import { argumentsOf, type ContentBlock, isCall, type Message } from '../state/message.ts';

/** Maximum depth of subagents that call subagents. The ids come from a model and could form a cycle. */
const DEPTH_MAX = 8;
const GIST_CHARS = 80;

type Status = ReturnType<typeof callStatus>;

const STATUS_WORDS: Readonly<Record<Status, string>> = {
  running: 'working',
  complete: 'done',
  failed: 'failed',
  declined: 'declined',
  waiting: 'waiting for you',
  stopped: 'stopped',
};

export interface MessageViewProps {
  readonly message: Message;
  readonly conversation: Conversation;
  /** Whether the message is in the last turn. Tool calls in earlier turns cannot be running. */
  readonly isLast: boolean;
  /** Number of nested subagents that contain the message. */
  readonly depth?: number;
}

/** A message of the agent: its text, its tool calls, and why it is incomplete. */
export function MessageView({ message, conversation, isLast, depth = 0 }: MessageViewProps): JSX.Element {
  // If a message was cut off, its tool calls were never started.
  const props = { conversation, isLast: isLast && message.state !== 'cut', depth };
  const note = noteOf(message);
  return (
    <>
      {message.blocks.map((block, index) => (
        <BlockView key={index} block={block} {...props} />
      ))}
      {message.error !== undefined && (
        <p class="problem plain">
          <LongText value={message.error} />
        </p>
      )}
      {note !== undefined && <p class="note">{note}</p>}
    </>
  );
}

/** Why an answer is short or empty, although its run completed. */
function noteOf({ state, blocks, finishReason }: Message): string | undefined {
  if (finishReason === 'length') return 'The answer reached the maximum length of the model.';
  if (finishReason === 'content_filter')
    return "The model refused to answer, or the provider's filter ended the answer.";
  const isEmpty = state === 'complete' && blocks.every(({ type, text }) => type === 'text' && !text);
  return isEmpty ? 'The model returned no text.' : undefined;
}

type BlockProps = Required<Omit<MessageViewProps, 'message'>>;

function BlockView({ block, ...props }: BlockProps & { block: ContentBlock }): JSX.Element | null {
  if (isCall(block)) return props.depth > DEPTH_MAX ? null : <CallView call={block} {...props} />;
  const { type, reasoning, image_url, url } = block;
  const text = stringOf(type === 'reasoning' ? reasoning : block.text) ?? '';
  if (type === 'image' || type === 'image_url')
    return <Picture source={stringOf(url) ?? stringOf(image_url) ?? stringOf(fieldsOf(image_url).url) ?? ''} text="" />;
  if (text === '') return null;
  if (type !== 'reasoning') return <LongText value={text}>{(shown) => <Markdown text={shown} />}</LongText>;
  return (
    <details class="reasoning">
      <summary>Reasoning</summary>
      <p class="plain" dir="auto">
        <LongText value={text} />
      </p>
    </details>
  );
}

function CallView({ call, ...props }: BlockProps & { call: ContentBlock }): JSX.Element {
  const { conversation, isLast } = props;
  const id = call.id ?? '';
  const known = conversation.calls.get(id);
  // The arguments are not JSON, so the tool was not called.
  const problem =
    call.type === 'invalid_tool_call' ? (stringOf(call.error) ?? 'The arguments are invalid.') : undefined;
  const status = problem === undefined ? callStatus(known, conversation, isLast) : 'failed';
  const output = problem ?? known?.output ?? '';
  const input = known?.input ?? call.args;
  const name = call.name || known?.name || 'tool';
  if (name === 'task') return <SubagentCard id={id} input={input} status={status} known={known} {...props} />;
  return (
    <details class="call" open={status === 'failed'}>
      <summary class="row">
        <span class="call-name ellipsis">{visible(name)}</span>
        <bdi class="call-gist ellipsis">{visible(gistOf(input))}</bdi>
        <StatusMark status={status} />
      </summary>
      <p class="label">Input</p>
      <Payload text={typeof input === 'string' ? input : (JSON.stringify(input, null, 2) ?? '')} label="Tool input" />
      {output !== '' && (
        <>
          <p class="label">{status === 'failed' ? 'Error' : 'Output'}</p>
          <Payload text={output} label="Tool output" />
        </>
      )}
    </details>
  );
}

interface SubagentCardProps extends BlockProps {
  readonly id: string;
  readonly input: unknown;
  readonly status: Status;
  readonly known: ToolCall | undefined;
}

/** A card that shows the messages of a subagent. */
function SubagentCard({ id, input, status, known, ...props }: SubagentCardProps): JSX.Element {
  const { subagent_type, description } = argumentsOf(input);
  const name = visible(stringOf(subagent_type) ?? 'subagent');
  const task = stringOf(description) ?? '';
  const own = [...props.conversation.messages.values()].filter(({ callId }) => callId === id);
  const output = known?.output ?? '';
  return (
    <article class={`subagent status-${status}`} aria-label={`Subagent ${name}`}>
      {/* Collapsed once the subagent has finished, because the answer contains its findings. */}
      <details open={status !== 'complete'}>
        <summary class="row">
          <strong>{name}</strong>
          <bdi class="call-gist ellipsis">{visible(beginningOf(task, GIST_CHARS))}</bdi>
          <StatusMark status={status} />
        </summary>
        {task.length > GIST_CHARS && (
          <p class="note plain" dir="auto">
            <LongText value={task} />
          </p>
        )}
        {own.map((message) => (
          <MessageView key={message.id} message={message} {...props} depth={props.depth + 1} />
        ))}
        {(status === 'failed' || (status === 'complete' && own.length === 0)) && (
          <p class={status === 'failed' ? 'problem plain' : 'plain'} dir="auto">
            <LongText value={output} />
          </p>
        )}
      </details>
    </article>
  );
}

function StatusMark({ status }: { status: Status }): JSX.Element {
  return (
    <span class={`status status-${status}`}>
      <Icon name={status} />
      {STATUS_WORDS[status]}
    </span>
  );
}

function Payload({ text, label }: { text: string; label: string }): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: The keyboard must reach an element that scrolls.
    <pre tabIndex={0} role="group" aria-label={label}>
      <LongText value={text} />
    </pre>
  );
}

/** Returns the only argument of a tool call, if it is text. */
function gistOf(input: unknown): string {
  const values = Object.values(fieldsOf(argumentsOf(input)));
  return values.length === 1 && typeof values[0] === 'string' ? beginningOf(values[0], GIST_CHARS) : '';
}
