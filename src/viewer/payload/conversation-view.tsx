import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { AttachmentInfo } from '../../receiver/store/run-view.ts';
import { attachmentUrl } from '../data/api.ts';
import { visible } from '../elements/visible-text.ts';
import { binaryOf, pictureOf, SHOWN } from './binary-text.ts';
import { BinaryChip, JsonTree } from './json-tree.tsx';
import type { Message, Part } from './message.ts';
import { Reading } from './reading.tsx';

/** Messages that are shown of a long conversation, from its end, and how many more at a time. */
const SHOWN_MESSAGES = 30;
const MORE_MESSAGES = 50;

/** Where pictures of messages may have gone: beside their payload. */
export interface Attached {
  readonly runId: string;
  readonly attachments: readonly AttachmentInfo[];
}

export function ConversationView({
  messages,
  attached,
}: {
  messages: readonly Message[];
  attached: Attached;
}): JSX.Element {
  const [count, setCount] = useState(SHOWN_MESSAGES);
  const hidden = Math.max(0, messages.length - count);
  return (
    <ol class="conversation" start={hidden + 1}>
      {hidden > 0 && (
        <li>
          <button type="button" class="more" onClick={() => setCount(count + MORE_MESSAGES)}>
            show {Math.min(MORE_MESSAGES, hidden)} earlier of {hidden.toLocaleString('en')} messages
          </button>
        </li>
      )}
      {messages.slice(hidden).map((message, index) => (
        <MessageView key={hidden + index} message={message} attached={attached} />
      ))}
    </ol>
  );
}

const ROLES: ReadonlySet<string> = new Set(['system', 'user', 'assistant', 'tool']);

function MessageView({
  message: { role, name, parts },
  attached,
}: {
  message: Message;
  attached: Attached;
}): JSX.Element {
  return (
    <li class={`message message-${ROLES.has(role) ? role : 'other'}`}>
      <p class="role">
        {visible(role)}
        {name !== undefined && <span class="note"> {visible(name)}</span>}
      </p>
      <div class="parts">
        {parts.map((part, index) => (
          <PartView key={index} part={part} attached={attached} />
        ))}
      </div>
    </li>
  );
}

function PartView({ part, attached }: { part: Part; attached: Attached }): JSX.Element {
  switch (part.kind) {
    case 'text':
      return <Reading text={part.text} />;
    case 'reasoning':
      return (
        <details class="reasoning" open={part.text.length < 600}>
          <summary>reasoning</summary>
          <Reading text={part.text} />
        </details>
      );
    case 'refusal':
      return (
        <div class="refusal">
          <p class="part-head">refusal</p>
          <Reading text={part.text} />
        </div>
      );
    case 'call':
      return <ToolPart title={part.name} label="calls" id={part.id} value={part.given} />;
    case 'result':
      return (
        <ToolPart
          title={part.name ?? ''}
          label={part.isError ? 'error of tool' : 'result of tool'}
          id={part.id}
          value={part.value}
          isError={part.isError}
        />
      );
    case 'media':
      return <Media source={part.source} type={part.type} attached={attached} />;
    default:
      return <JsonTree value={part.value} />;
  }
}

function ToolPart({
  title,
  label,
  id,
  value,
  isError = false,
}: {
  title: string;
  label: string;
  id: string | undefined;
  value: unknown;
  isError?: boolean;
}): JSX.Element {
  return (
    <div class={isError ? 'tool-part failed' : 'tool-part'}>
      <p class="part-head">
        {label} <strong>{visible(title)}</strong>
        {id !== undefined && <span class="note"> {visible(id)}</span>}
      </p>
      {typeof value === 'string' ? <Reading text={value} /> : <JsonTree value={value} isCompact />}
    </div>
  );
}

/** A picture in the payload or beside it; of another file how much there is; of one elsewhere where it is. */
function Media({
  source,
  type,
  attached,
}: {
  source: string;
  type: string | undefined;
  attached: Attached;
}): JSX.Element {
  const [, name] = /^\[Attachment (.+?): /.exec(source) ?? [];
  const attachment = attached.attachments.find((one) => one.name === name);
  if (attachment !== undefined) return <Attachment attachment={attachment} runId={attached.runId} />;
  const uri =
    type !== undefined && binaryOf(source) !== undefined && !source.startsWith('data:')
      ? `data:${type};base64,${source}`
      : source;
  const picture = pictureOf(uri);
  if (picture !== undefined) return <img class="picture" src={picture} alt="From the message" />;
  if (binaryOf(uri) !== undefined) return <BinaryChip text={uri} />;
  if (/^https?:\/\//i.test(source)) {
    return (
      <a href={source} target="_blank" rel="noopener noreferrer">
        {visible(source)}
      </a>
    );
  }
  return <Reading text={source} />;
}

/** Pictures are shown, of what is safe to show; everything can be downloaded. */
export function Attachment({ attachment, runId }: { attachment: AttachmentInfo; runId: string }): JSX.Element {
  const { name, mime_type, size } = attachment;
  const url = attachmentUrl(runId, name);
  return (
    <figure class="attachment">
      {SHOWN.has(mime_type) && <img class="picture" src={url} alt={visible(name)} loading="lazy" />}
      <figcaption>
        <a href={url} download>
          {visible(name)}
        </a>{' '}
        <span class="note">
          {visible(mime_type)} · {size.toLocaleString('en')} bytes
        </span>
      </figcaption>
    </figure>
  );
}
