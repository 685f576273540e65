import type { JSX } from 'preact';

/** Paths on a 16 × 16 grid, drawn in the text color. */
const PATHS = {
  menu: 'M2.5 4h11M2.5 8h11M2.5 12h11',
  new: 'M8 3v10M3 8h10',
  delete: 'M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4M9.2 7v4',
  close: 'M4 4l8 8M12 4l-8 8',
  theme: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 2v12a6 6 0 0 0 0-12z',
  history: 'M2.8 5.5A6 6 0 1 1 2 8M2.5 2.5v3.2h3.2M8 4.8V8l2.4 1.6',
  send: 'M8 13V3M4 7l4-4 4 4',
  stop: 'M4.5 4.5h7v7h-7z',
  retry: 'M13.2 5.5A6 6 0 1 0 14 8M13.5 2.5v3.2h-3.2',
  edit: 'M3 13l.6-2.8 7-7a1.4 1.4 0 0 1 2 0l.2.2a1.4 1.4 0 0 1 0 2l-7 7z',
  like: 'M5 7v6.5H2.5V7zM5 7l2.8-5c1 0 1.7.7 1.5 1.8L8.8 6.2h3.7c.7 0 1.2.6 1.1 1.3l-.8 4.9c-.1.6-.6 1.1-1.2 1.1H5',
  dislike:
    'M5 9V2.5H2.5V9zM5 9l2.8 5c1 0 1.7-.7 1.5-1.8l-.5-2.4h3.7c.7 0 1.2-.6 1.1-1.3l-.8-4.9c-.1-.6-.6-1.1-1.2-1.1H5',
  copy: 'M6 6h7.5v7.5H6zM10 6V2.5H2.5V10H6',
  trace: 'M2.5 3.5h7M4.5 8h9M6.5 12.5h5',
  running: 'M8 2a6 6 0 1 0 6 6',
  complete: 'M3.5 8.5l3 3 6-7',
  failed: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6',
  declined: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM5.4 8h5.2',
  waiting: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM6.3 5.6v4.8M9.7 5.6v4.8',
  stopped: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM3.8 12.2l8.4-8.4',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

interface IconButtonProps extends Omit<JSX.IntrinsicElements['button'], 'icon' | 'label'> {
  readonly icon: IconName;
  /** Text that is shown on hover and read by screen readers. */
  readonly label: string;
}

export function IconButton({ icon, label, class: more = '', ...attributes }: IconButtonProps): JSX.Element {
  return (
    <button type="button" class={`button quiet ${more}`} aria-label={label} title={label} {...attributes}>
      <Icon name={icon} />
    </button>
  );
}
