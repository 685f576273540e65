import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { type AttachmentInfo, IMAGE_TYPES } from '../../receiver/domain/run-view.ts';
import type { Message, Part } from '../../services/message.ts';
import { attachmentUrl } from '../data/api.ts';
import { isMarkdown } from '../data/preferences.ts';
import { saved } from '../data/trace-file.ts';
import { Button } from '../elements/controls.tsx';
import { plural } from '../elements/figures.ts';
import { lazy } from '../elements/lazy.tsx';
import { LongText, Text } from '../elements/text.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { binaryOf, imageOf } from './binary-text.ts';
import { BinaryChip, JsonTree } from './json-tree.tsx';
import { Picture } from './picture.tsx';

/** Number of messages to show at first, from the end of the conversation. */
const PAGE = 30;
/** Maximum length of reasoning text that is expanded at first. */
const REASONING_OPEN_LENGTH = 600;

/** A run whose attachments may contain the media of its messages. */
export interface AttachmentOwner {
  readonly id: string;
  readonly attachments?: readonly AttachmentInfo[];
}

/** Returns a field for a part, or undefined if the part is only shown. */
type Edit = ((part: Part) => JSX.Element | undefined) | undefined;

export function ConversationView(props: {
  messages: readonly Message[];
  run: AttachmentOwner;
  edit?: Edit;
}): JSX.Element {
  const { messages, run, edit } = props;
  const [count, setCount] = useState(PAGE);
  const hidden = Math.max(0, messages.length - count);
  return (
    <ol class="divided" start={hidden + 1}>
      {hidden > 0 && (
        <li>
          <Button
            text={`Show ${Math.min(PAGE, hidden)} of ${plural(hidden, 'earlier message')}`}
            class="more"
            onClick={() => setCount(count + PAGE)}
          />
        </li>
      )}
      {messages.slice(hidden).map(({ role, name, parts }, index) => (
        <li
          key={hidden + index}
          class={`message message-${role === 'assistant' || role === 'system' ? role : 'other'}`}
        >
          <p class="role small">
            {visibleText(role)}
            {name !== undefined && <span class="note"> {visibleText(name)}</span>}
          </p>
          <div class="parts">
            <Parts parts={parts} run={run} edit={edit} />
          </div>
        </li>
      ))}
    </ol>
  );
}

export function Parts(props: { parts: readonly Part[]; run: AttachmentOwner; edit?: Edit }): JSX.Element {
  const { parts, run, edit } = props;
  return <>{parts.map((part, index) => edit?.(part) ?? <PartView key={index} part={part} run={run} />)}</>;
}

function PartView({ part, run }: { part: Part; run: AttachmentOwner }): JSX.Element {
  switch (part.kind) {
    case 'text':
      return <Reading text={part.text} />;
    case 'reasoning':
      return (
        <details class="box reasoning" open={part.text.length < REASONING_OPEN_LENGTH}>
          <summary>Reasoning</summary>
          <Reading text={part.text} />
        </details>
      );
    case 'refusal':
      return <ToolPart label="Refusal" value={part.text} isError />;
    case 'call':
      return <ToolPart label="Tool call" name={part.name} id={part.id} value={part.input} />;
    case 'result': {
      const label = part.isError ? 'Tool error' : 'Tool result';
      return <ToolPart label={label} name={part.name} id={part.id} value={part.value} isError={part.isError} />;
    }
    case 'media':
      return <Media source={part.source} type={part.type} run={run} />;
    default:
      return <JsonTree value={part.value} />;
  }
}

function ToolPart(props: {
  label: string;
  name?: string | undefined;
  id?: string | undefined;
  value: unknown;
  isError?: boolean;
}): JSX.Element {
  const { label, name = '', id, value, isError = false } = props;
  return (
    <div class={isError ? 'box failed' : 'box'}>
      <p class="part-head small">
        {label} <strong>{visibleText(name)}</strong>
        {id !== undefined && <span class="note"> {visibleText(id)}</span>}
      </p>
      {typeof value === 'string' ? <Reading text={value} /> : <JsonTree value={value} isCompact />}
    </div>
  );
}

/** Shows media as an image, a link or its size. The data is in the payload or in an attachment of the run. */
function Media({ source, type, run }: { source: string; type: string | undefined; run: AttachmentOwner }): JSX.Element {
  const [, name] = /^\[Attachment (.+?): /.exec(source) ?? [];
  const attachment = run.attachments?.find((one) => one.name === name);
  if (attachment !== undefined) return <Attachment attachment={attachment} runId={run.id} />;
  const isBareBase64 = type !== undefined && binaryOf(source) !== undefined && !source.startsWith('data:');
  const uri = isBareBase64 ? `data:${type};base64,${source}` : source;
  const image = imageOf(uri);
  if (image !== undefined) return <Picture source={image} alt="Image from the message" />;
  if (binaryOf(uri) !== undefined) return <BinaryChip text={uri} />;
  if (!/^https?:\/\//i.test(source)) return <Reading text={source} />;
  return (
    <a href={source} target="_blank" rel="noopener noreferrer">
      {visibleText(source)}
    </a>
  );
}

/** An attachment with a download link, and with a preview if it is a safe image. */
export function Attachment({ attachment, runId }: { attachment: AttachmentInfo; runId: string }): JSX.Element {
  const { name, mime_type, size } = attachment;
  const url = attachmentUrl(runId, name);
  return (
    <figure>
      {url !== undefined && IMAGE_TYPES.has(mime_type) && <Picture source={url} alt={name} />}
      <figcaption>
        {url === undefined ? (
          visibleText(name)
        ) : (
          <a href={url} download={saved === undefined ? true : name}>
            {visibleText(name)}
          </a>
        )}{' '}
        <span class="note">
          {visibleText(mime_type)} · {size.toLocaleString('en')} bytes{url === undefined && ' · left out of this file'}
        </span>
      </figcaption>
    </figure>
  );
}

const Markdown = lazy(() => import('./markdown.tsx'), PlainText);

export function Reading({ text }: { text: string }): JSX.Element {
  if (binaryOf(text) !== undefined) return <BinaryChip text={text} />;
  const Shown = isMarkdown.value ? Markdown : PlainText;
  return (
    <div class="reading">
      <LongText value={text}>{(shown) => <Shown text={shown} />}</LongText>
    </div>
  );
}

function PlainText({ text }: { text: string }): JSX.Element {
  return (
    <div class="plain">
      <Text value={text} />
    </div>
  );
}
