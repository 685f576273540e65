import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Address } from '../data/address.ts';
import { go, linkTo } from '../data/navigation.ts';
import { nextTheme, theme } from '../data/preferences.ts';
import { saved } from '../data/trace-file.ts';
import { Icon } from './icon.tsx';
import { visibleText } from './visible-text.ts';

const COPIED_MS = 1_500;

interface LinkProps {
  to: Partial<Address>;
  class?: string;
  title?: string;
  tabIndex?: number;
  'aria-current'?: 'page' | undefined;
  children: ComponentChildren;
}

/** A link within the page. With a modifier key, it opens a new tab or window. In a saved trace, it is only text. */
export function Link({ to, ...props }: LinkProps): JSX.Element {
  if (saved !== undefined) return <span class={props.class}>{props.children}</span>;
  const follow = (event: MouseEvent): void => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return;
    event.preventDefault();
    go(to);
  };
  return <a {...props} href={linkTo(to)} onClick={follow} />;
}

interface ButtonProps extends Omit<JSX.IntrinsicElements['button'], 'icon'> {
  icon?: string;
  text?: ComponentChildren;
}

export function Button({ icon, text, ...props }: ButtonProps): JSX.Element {
  return (
    <button type="button" class="button" {...props}>
      {icon !== undefined && <Icon name={icon} />}
      {text}
    </button>
  );
}

/** A button that turns an option on or off and shows its state. */
export function Toggle({ isOn, ...props }: ButtonProps & { isOn: boolean }): JSX.Element {
  return <Button class="tab" aria-pressed={isOn} {...props} />;
}

export function Switch<Name extends string>(props: {
  label: string;
  names: readonly Name[];
  shown: Name | undefined;
  show: (name: Name) => void;
}): JSX.Element {
  const { label, names, shown, show } = props;
  return (
    <span class="switch" role="group" aria-label={label}>
      {names.map((name) => (
        <Toggle key={name} text={name} class="" isOn={name === shown} onClick={() => show(name)} />
      ))}
    </span>
  );
}

export function ThemeButton(): JSX.Element {
  const label = `Theme: ${theme.value}`;
  return <Button icon="theme" class="button quiet" title={label} aria-label={label} onClick={nextTheme} />;
}

/** A button that copies a text, created when the user clicks the button. */
export function CopyButton({ text, label, word }: { text: () => string; label: string; word?: string }): JSX.Element {
  const [result, setResult] = useState<string>();
  const copy = async (): Promise<void> => {
    try {
      await writeClipboard(text());
      setResult('Copied');
    } catch {
      setResult('The browser does not allow copying');
    }
    setTimeout(() => setResult(undefined), COPIED_MS);
  };
  return (
    <button type="button" class="copy" title={label} aria-label={label} onClick={copy}>
      {result === undefined ? <Icon name="copy" /> : <span role="status">{result}</span>}
      {result === undefined && word}
    </button>
  );
}

/** Browsers have `navigator.clipboard` only in secure contexts. `execCommand` may return true without the event. */
async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  let isCopied = false;
  const fill = (event: ClipboardEvent): void => {
    event.preventDefault();
    event.clipboardData?.setData('text/plain', text);
    isCopied = true;
  };
  document.addEventListener('copy', fill);
  document.execCommand('copy');
  document.removeEventListener('copy', fill);
  if (!isCopied) throw new Error('The browser did not copy');
}

/** A command to run in a terminal, with a button that copies it. */
export function Command({ text }: { text: string }): JSX.Element {
  return (
    <p class="line box command">
      <code>{visibleText(text)}</code>
      <CopyButton text={() => text} label={`Copy: ${visibleText(text)}`} />
    </p>
  );
}

/** The error message of a view. Renders nothing if there is no error. */
export function Problem({ text }: { text?: string | undefined }): JSX.Element | null {
  if (text === undefined) return null;
  return (
    <p class="problem" role="alert">
      {text}
    </p>
  );
}

/** Placeholder for a view without a value. Shows either an error message or a loading note. */
export function Pending({ problem, note }: { problem?: string | undefined; note: string }): JSX.Element {
  return problem === undefined ? <p class="loading">{note}</p> : <Problem text={problem} />;
}

/** The first items of a list, with a button that shows more items. */
export function Paged<Item>(props: {
  items: readonly Item[];
  page: number;
  children: (item: Item, index: number) => JSX.Element;
}): JSX.Element {
  const { items, page, children } = props;
  const [count, setCount] = useState(page);
  const left = items.length - count;
  return (
    <>
      {items.slice(0, count).map(children)}
      {left > 0 && (
        <li>
          <Button
            text={`Show ${Math.min(page, left)} more of ${left.toLocaleString('en')}`}
            class="more"
            onClick={() => setCount(count + page)}
          />
        </li>
      )}
    </>
  );
}

interface SectionProps {
  title: string;
  note?: string | number | undefined;
  controls?: ComponentChildren;
  children: ComponentChildren;
}

/** Part of a panel: a heading, optional controls, and content. */
export function Section({ title, note, controls, children }: SectionProps): JSX.Element {
  return (
    <section class="section" aria-label={title}>
      <header class="line">
        <h3>{title}</h3>
        <span class="note">{note}</span>
        <span class="space" />
        {controls}
      </header>
      {children}
    </section>
  );
}

export type Pair = readonly [name: string, value: ComponentChildren, title?: string | undefined];

export function Pairs(props: { pairs: readonly Pair[]; class?: 'pairs text-fields' | 'facts' }): JSX.Element {
  return (
    <dl class={props.class ?? 'pairs'}>
      {props.pairs.map(([name, value, title]) => (
        <div key={name} title={title}>
          <dt>{visibleText(name)}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
