import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { exactJson, isFields } from '../../payload/fields.ts';
import { Button, CopyButton, Paged } from '../elements/controls.tsx';
import { bytes } from '../elements/figures.ts';
import { LongText } from '../elements/text.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { binaryOf, imageOf } from './binary-text.ts';
import { Picture } from './picture.tsx';

/** Depth from which values are collapsed at first. Values with too many items are collapsed at any depth. */
const OPEN_DEPTH = 2;
const OPEN_ITEMS = 24;
const PAGE = 100;
/** Maximum length of collapsed values that are shown on one line. */
const INLINE_LENGTH = 100;

/** Shows a JSON value as a tree, with only expanded values in the DOM. If `isCompact`, on one line if it fits. */
export function JsonTree(props: { value: unknown; path?: string; isCompact?: boolean }): JSX.Element {
  const { value, path = '$', isCompact = false } = props;
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
  readonly isOpen: boolean;
}

function Node(props: NodeProps): JSX.Element {
  const { name, value, path } = props;
  if (isFields(value) || Array.isArray(value)) return <Branch {...props} value={value} />;
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
  const open = size > 0 && (opened ?? (isOpen && (depth === 0 || (size <= OPEN_ITEMS && inline === undefined))));
  const summary = (
    <>
      <Name name={name} />
      <span class="json-size">{open ? sizeOf(keys, size) : (inline ?? sizeOf(keys, size))}</span>
    </>
  );
  return (
    <li class="json-row">
      <span class="json-line">
        {size === 0 ? (
          summary
        ) : (
          <Button text={summary} class="json-fold" aria-expanded={open} onClick={() => setOpened(!open)} />
        )}
        <Copies value={value} path={path} />
      </span>
      {open && (
        <ul>
          <Paged<string | number> items={keys ?? [...(value as unknown[]).keys()]} page={PAGE}>
            {(key) => (
              <Node
                key={key}
                name={key}
                value={(value as Record<string | number, unknown>)[key]}
                path={path + stepOf(key)}
                depth={depth + 1}
                isOpen={depth + 1 < OPEN_DEPTH && size <= OPEN_ITEMS}
              />
            )}
          </Paged>
        </ul>
      )}
    </li>
  );
}

function Name({ name }: { name: string | number | undefined }): JSX.Element | null {
  if (name === undefined) return null;
  return <span class={typeof name === 'number' ? 'note' : ''}>{visibleText(`${name}`)}: </span>;
}

function Leaf({ value }: { value: unknown }): JSX.Element {
  if (typeof value !== 'string') return <span class={value === null ? 'note' : 'json-literal'}>{`${value}`}</span>;
  if (binaryOf(value) !== undefined) return <BinaryChip text={value} />;
  return (
    <span class="json-string">
      "<LongText value={value} />"
    </span>
  );
}

/** Shows the type and size of binary data, with buttons that show the data as an image or as text. */
export function BinaryChip({ text }: { text: string }): JSX.Element {
  const [shown, setShown] = useState<'image' | 'text'>();
  const found = binaryOf(text);
  const image = imageOf(text);
  const forms = [...(image === undefined ? [] : ['image' as const]), 'text' as const];
  return (
    <span>
      <span class="chip">
        {visibleText(found?.type ?? 'base64')} · {bytes(found?.sizeBytes ?? text.length)}
      </span>
      {forms
        .filter((form) => form !== shown)
        .map((form) => (
          <Button key={form} text={`Show ${form}`} class="more" onClick={() => setShown(form)} />
        ))}
      {shown === 'image' && <Picture source={image ?? ''} alt="Image from the payload" />}
      {shown === 'text' && (
        <span class="json-string">
          <LongText value={text} />
        </span>
      )}
    </span>
  );
}

function Copies({ value, path }: { value: unknown; path: string }): JSX.Element {
  const text = (): string => (typeof value === 'string' ? value : exactJson(value, 2));
  return (
    <span class="json-copies">
      <CopyButton text={text} label="Copy the value" word="value" />
      <CopyButton text={() => path} label="Copy the path" word="path" />
    </span>
  );
}

/** Returns a value as text of at most `length` characters, without quotes around keys. */
export function printed(value: unknown, length: number): string {
  return printWithin(value, length) ?? `${exactJson(value).slice(0, length)}…`;
}

/** Returns a value as text, or undefined if the text does not fit on one line. */
function inlineOf(value: object): string | undefined {
  const text = printWithin(value, INLINE_LENGTH);
  return text === undefined || text.length > INLINE_LENGTH ? undefined : visibleText(text);
}

/** Formats a value as text. Returns undefined if the text would exceed about `room` characters. */
function printWithin(value: unknown, room: number): string | undefined {
  if (typeof value === 'string' && value.length > room) return undefined;
  if (!isFields(value) && !Array.isArray(value)) return exactJson(value);
  const isList = Array.isArray(value);
  const pieces: string[] = [];
  let left = room;
  for (const key of isList ? value.keys() : Object.keys(value)) {
    const item = left < 0 ? undefined : printWithin((value as Record<string | number, unknown>)[key], left);
    if (item === undefined) return undefined;
    const piece = isList ? item : `${key}: ${item}`;
    left -= piece.length + 2;
    pieces.push(piece);
  }
  if (pieces.length === 0) return isList ? '[]' : '{}';
  return isList ? `[${pieces.join(', ')}]` : `{ ${pieces.join(', ')} }`;
}

function sizeOf(keys: readonly string[] | undefined, size: number): string {
  if (size === 0) return keys === undefined ? '[]' : '{}';
  if (keys === undefined) return `[ ${size.toLocaleString('en')} ]`;
  const first = keys.slice(0, 3).map((key) => visibleText(key.slice(0, 24)));
  return `{ ${first.join(', ')}${size > first.length ? `, … ${size.toLocaleString('en')} keys` : ''} }`;
}

function stepOf(key: string | number): string {
  if (typeof key === 'number') return `[${key}]`;
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}
