import type { JSX } from 'preact';
import { CallView } from './call-view.tsx';
import type { Conversation } from './conversation.ts';
import { Markdown } from './markdown.tsx';
import type { Block, Message } from './message.ts';
import { LongText } from './text.tsx';

/** Subagents of subagents that are shown: ids are a model's own, and could lead in a circle. */
const DEPTH_MAX = 8;

/** What an agent says, and what it calls, in the order in which it does. */
export function MessageBlocks({
  message,
  conversation,
  isLive,
  depth = 0,
}: {
  message: Message;
  conversation: Conversation;
  /** Whether it is of the last turn: what earlier ones have called is over. */
  isLive: boolean;
  /** Subagents that it is within. */
  depth?: number;
}): JSX.Element {
  // What a message calls that was cut was never begun.
  const isUnderWay = isLive && message.state !== 'cut';
  return (
    <>
      {message.blocks.map((block, index) => (
        <BlockView key={index} block={block} conversation={conversation} isLive={isUnderWay} depth={depth} />
      ))}
      {message.error !== undefined && (
        <p class="problem plain">
          <LongText value={message.error} />
        </p>
      )}
      {message.state === 'cut' && message.error === undefined && <p class="note">Stopped here.</p>}
      {message.isAtLimit && <p class="note">The answer was cut: it is as long as the model may answer.</p>}
    </>
  );
}

function BlockView({
  block,
  conversation,
  isLive,
  depth,
}: {
  block: Block;
  conversation: Conversation;
  isLive: boolean;
  depth: number;
}): JSX.Element | null {
  switch (block.kind) {
    case 'text':
      return block.text === '' ? null : <LongText value={block.text}>{(shown) => <Markdown text={shown} />}</LongText>;
    case 'reasoning':
      return block.text === '' ? null : (
        <details class="reasoning">
          <summary>Reasoning</summary>
          <p class="plain" dir="auto">
            <LongText value={block.text} />
          </p>
        </details>
      );
    case 'call':
      if (depth > DEPTH_MAX) return null;
      return (
        <CallView call={block} conversation={conversation} isLive={isLive}>
          {(inner) => (
            <MessageBlocks
              key={inner.id}
              message={inner}
              conversation={conversation}
              isLive={isLive}
              depth={depth + 1}
            />
          )}
        </CallView>
      );
    default:
      return null;
  }
}
