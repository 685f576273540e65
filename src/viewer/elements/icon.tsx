import type { JSX } from 'preact';
import type { TraceOutcome } from '../../receiver/domain/run-view.ts';

/** SVG paths on a 16 × 16 grid, drawn in the text colour. */
const PATHS: Readonly<Record<string, string>> = {
  success: 'M3.5 8.5l3 3 6-7',
  failed_below: 'M8 2.2l6.3 11.3H1.7zM8 6.4v3.4M8 11.6v.1',
  error: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6',
  pending: 'M8 2a6 6 0 1 0 6 6M8 4.8V8l2.2 1.6',
  cancelled: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM3.8 12.2l8.4-8.4',
  interrupted: 'M8.8 1.5L3.5 9h3.7l-.9 5.5L12.5 6.8H8.6z',
  incomplete:
    'M8 2a6 6 0 1 1 0 12M8 2a6 6 0 0 0-4.2 1.7M2 8a6 6 0 0 1 .6-2.6M2.6 10.6A6 6 0 0 0 4 12.6M6 13.7a6 6 0 0 0 2 .3',
  chain: 'M6.5 9.5l3-3M7 4.8l1.6-1.6a2.8 2.8 0 0 1 4 4L11 8.8M9 11.2l-1.6 1.6a2.8 2.8 0 0 1-4-4L5 7.2',
  llm: 'M2.5 3.5h11v7.5H8l-3 2.5v-2.5H2.5z',
  tool: 'M10.2 2.2a3.6 3.6 0 0 0-4.4 4.6L2 10.6 5.4 14l3.8-3.8a3.6 3.6 0 0 0 4.6-4.4L11.4 8 8 4.6z',
  retriever: 'M7 2.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6zM10.5 10.5L14 14',
  embedding: 'M3 3h.01M8 3h.01M13 3h.01M3 8h.01M8 8h.01M13 8h.01M3 13h.01M8 13h.01M13 13h.01',
  prompt: 'M3 4l4 4-4 4M8.5 12.5H13',
  parser:
    'M6 2.5c-2 0-2 1-2 2.6C4 6.6 4 7.6 2.3 8 4 8.4 4 9.4 4 10.9c0 1.6 0 2.6 2 2.6M10 2.5c2 0 2 1 2 2.6 0 1.5 0 2.5 1.7 2.9-1.7.4-1.7 1.4-1.7 2.9 0 1.6 0 2.6-2 2.6',
  other: 'M3.5 3.5h9v9h-9z',
  add: 'M2.5 4h8M2.5 8h5M2.5 12h5M11.5 8v6M8.5 11h6',
  open: 'M6 3.5L10.5 8 6 12.5',
  close: 'M4 4l8 8M12 4l-8 8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  back: 'M9.5 3.5L5 8l4.5 4.5',
  up: 'M8 13V3.5M4 7l4-4 4 4',
  down: 'M8 3v9.5M4 9l4 4 4-4',
  download: 'M8 2.5v8M4.5 7.5L8 11l3.5-3.5M2.5 13.5h11',
  time: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 4.8V8l2.2 1.6',
  views: 'M4.5 2.5h7v11L8 10.8l-3.5 2.7z',
  columns: 'M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10',
  delete: 'M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4M9.2 7v4',
  theme: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 2v12a6 6 0 0 0 0-12z',
  like: 'M5 7v6.5H2.5V7zM5 7l2.8-5c1 0 1.7.7 1.5 1.8L8.8 6.2h3.7c.7 0 1.2.6 1.1 1.3l-.8 4.9c-.1.6-.6 1.1-1.2 1.1H5',
  dislike:
    'M5 9V2.5H2.5V9zM5 9l2.8 5c1 0 1.7-.7 1.5-1.8l-.5-2.4h3.7c.7 0 1.2-.6 1.1-1.3l-.8-4.9c-.1-.6-.6-1.1-1.2-1.1H5',
  search: 'M7 2.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6zM10.5 10.5L14 14',
};

export function Icon({ name }: { name: string }): JSX.Element {
  const path = Object.hasOwn(PATHS, name) ? PATHS[name] : PATHS.other;
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}

interface StatusMarkProps {
  status: TraceOutcome;
  count?: number;
  /** Whether the word is visible only to screen readers. */
  isShort?: boolean;
}

export function StatusMark({ status, count, isShort = false }: StatusMarkProps): JSX.Element {
  return (
    <span class={`status status-${status}`} title={STATUS_TITLES[status]}>
      <Icon name={status} />
      {count !== undefined && `${count.toLocaleString('en')} `}
      <span class={isShort ? 'unseen' : ''}>{status.replace('_', ' ')}</span>
    </span>
  );
}

const STATUS_TITLES: Readonly<Record<TraceOutcome, string>> = {
  success: 'Ended without an error',
  failed_below: 'Ended without an error, but a run below it failed',
  error: 'Ended with an error',
  incomplete: 'The root or an end has not arrived; the run may still be active',
  pending: 'Has not ended yet',
  cancelled: 'Cancelled by its caller',
  interrupted: 'The process stopped before the run ended',
};

export const OUTCOMES = Object.keys(STATUS_TITLES) as readonly TraceOutcome[];
