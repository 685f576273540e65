import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { CopyButton } from '../elements/controls.tsx';
import { bytes } from '../elements/figures.ts';
import { LongText, Text } from '../elements/text.tsx';
import { visible } from '../elements/visible-text.ts';
import { binaryOf, pictureOf } from './binary-text.ts';

/** What is deeper is closed at first, and so is what has more items than fit a screen. */
const DEPTH_OPEN = 2;
const ITEMS_OPEN = 24;
/** Items that are shown at a time. */
const PAGE = 100;

/** What is no longer than this stands in one line, closed. */
const INLINE_LENGTH = 100;

/** A value of JSON, of which only what has been opened is in the document. */
export function JsonTree({
  value,
  path = '$',
  isCompact = false,
}: {
  value: unknown;
  path?: string;
  /** Whether it begins in one line, if it fits one. */
  isCompact?: boolean;
}): JSX.Element {
  return (
    <ul class="json">
      <Node value={value} path={path} depth={isCompact ? 1 : 0} isOpen />
    </ul>
  );
}

interface NodeProps {
  readonly name?: string | number;
  readonly value: unknown;
  readonly path: string;
  readonly depth: number;
  /** As long as the reader has not said otherwise. */
  readonly isOpen: boolean;
}

function Node(props: NodeProps): JSX.Element {
  const { name, value, path } = props;
  if (typeof value === 'object' && value !== null) return <Branch {...props} value={value} />;
  return (
    <li class="json-row">
      <span class="json-line">
        <Name name={name} />
        <Leaf value={value} />
        <Copies value={value} path={path} />
      </span>
    </li>
  );
}

function Branch({ name, value, path, depth, isOpen }: NodeProps & { value: object }): JSX.Element {
  const keys = Array.isArray(value) ? undefined : Object.keys(value);
  const size = keys?.length ?? (value as unknown[]).length;
  const [opened, setOpened] = useState<boolean>();
  const inline = size > 0 ? inlineOf(value) : undefined;
  const open = size > 0 && (opened ?? (isOpen && (depth === 0 || (size <= ITEMS_OPEN && inline === undefined))));
  return (
    <li class="json-row">
      <span class="json-line">
        {size > 0 ? (
          <button
            type="button"
            class={open ? 'json-fold open' : 'json-fold'}
            aria-expanded={open}
            onClick={() => setOpened(!open)}
          >
            <Name name={name} />
            <span class="json-size">{open ? sizeOf(keys, size) : (inline ?? sizeOf(keys, size))}</span>
          </button>
        ) : (
          <>
            <Name name={name} />
            <span class="json-size">{keys === undefined ? '[]' : '{}'}</span>
          </>
        )}
        <Copies value={value} path={path} />
      </span>
      {open && <Items value={value} keys={keys} size={size} path={path} depth={depth} />}
    </li>
  );
}

function Items({
  value,
  keys,
  size,
  path,
  depth,
}: {
  value: object;
  keys: readonly string[] | undefined;
  size: number;
  path: string;
  depth: number;
}): JSX.Element {
  const [shown, setShown] = useState(PAGE);
  // The first page of something long is itself closed, so that a list of lists opens as a list.
  const isOpen = depth + 1 < DEPTH_OPEN && size <= ITEMS_OPEN;
  const places = Array.from({ length: Math.min(shown, size) }, (_, index) => keys?.[index] ?? index);
  return (
    <ul>
      {places.map((place) => (
        <Node
          key={place}
          name={place}
          value={(value as Record<string | number, unknown>)[place]}
          path={path + stepOf(place)}
          depth={depth + 1}
          isOpen={isOpen}
        />
      ))}
      {size > shown && (
        <li class="json-row">
          <button type="button" class="more" onClick={() => setShown(shown + PAGE)}>
            show {Math.min(PAGE, size - shown)} more of {(size - shown).toLocaleString('en')}
          </button>
        </li>
      )}
    </ul>
  );
}

function Name({ name }: { name: string | number | undefined }): JSX.Element | null {
  if (name === undefined) return null;
  return <span class={typeof name === 'number' ? 'json-index' : 'json-key'}>{visible(`${name}`)}: </span>;
}

function Leaf({ value }: { value: unknown }): JSX.Element {
  if (typeof value !== 'string')
    return <span class={`json-${value === null ? 'null' : typeof value}`}>{`${value}`}</span>;
  return binaryOf(value) === undefined ? (
    <span class="json-string">
      "<LongText value={value} />"
    </span>
  ) : (
    <BinaryChip text={value} />
  );
}

/** How much there is of what is no text, and the picture that it is. */
export function BinaryChip({ text }: { text: string }): JSX.Element {
  const [isShown, setShown] = useState<'picture' | 'text'>();
  const found = binaryOf(text);
  const picture = pictureOf(text);
  return (
    <span class="binary">
      <span class="chip">
        {visible(found?.type ?? 'base64')} · {bytes(found?.size ?? text.length)}
      </span>
      {picture !== undefined && isShown !== 'picture' && (
        <button type="button" class="more" onClick={() => setShown('picture')}>
          show picture
        </button>
      )}
      {isShown !== 'text' && (
        <button type="button" class="more" onClick={() => setShown('text')}>
          show text
        </button>
      )}
      {isShown === 'picture' && <img class="picture" src={picture} alt="From the payload" />}
      {isShown === 'text' && (
        <span class="json-string">
          <LongText value={text}>{(part) => <Text value={part} />}</LongText>
        </span>
      )}
    </span>
  );
}

function Copies({ value, path }: { value: unknown; path: string }): JSX.Element {
  const text = (): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));
  return (
    <span class="json-copies">
      <CopyButton text={text} label="Copy the value" word="value" />
      <CopyButton text={() => path} label="Copy the path" word="path" />
    </span>
  );
}

/** A small value as it is written; undefined for one that would not fit a line. */
function inlineOf(value: object): string | undefined {
  const text = written(value, INLINE_LENGTH);
  return text === undefined || text.length > INLINE_LENGTH ? undefined : visible(text);
}

/** Gives up as soon as there is more than `room`, however much there is. */
function written(value: unknown, room: number): string | undefined {
  if (typeof value === 'string' && value.length > room) return undefined;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const isList = Array.isArray(value);
  const pieces: string[] = [];
  let left = room;
  for (const key of isList ? value.keys() : Object.keys(value)) {
    const item = left < 0 ? undefined : written((value as Record<string | number, unknown>)[key], left);
    if (item === undefined) return undefined;
    const piece = isList ? item : `${key}: ${item}`;
    left -= piece.length + 2;
    pieces.push(piece);
  }
  if (pieces.length === 0) return isList ? '[]' : '{}';
  return isList ? `[${pieces.join(', ')}]` : `{ ${pieces.join(', ')} }`;
}

function sizeOf(keys: readonly string[] | undefined, size: number): string {
  if (keys === undefined) return `[ ${size.toLocaleString('en')} ]`;
  const first = keys.slice(0, 3).map((key) => visible(key.slice(0, 24)));
  return `{ ${first.join(', ')}${size > first.length ? `, … ${size.toLocaleString('en')} keys` : ''} }`;
}

function stepOf(place: string | number): string {
  if (typeof place === 'number') return `[${place}]`;
  return /^[A-Za-z_$][\w$]*$/.test(place) ? `.${place}` : `[${JSON.stringify(place)}]`;
}
