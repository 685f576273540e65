import type { ComponentType, JSX } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { address } from '../data/navigation.ts';
import { Icon } from './icon.tsx';

interface MenuProps {
  name: string;
  icon: string;
  /** Text of the button. Without a text, the button shows the name, or only the icon if the screen is narrow. */
  value?: string;
  panel: ComponentType;
}

/** A button that opens a panel. The panel closes after Escape, a change of the address, or a click or focus elsewhere. */
export function Menu({ name, icon, value, panel: Panel }: MenuProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const menu = useRef<HTMLDivElement>(null);
  const id = useId();
  const close = (): void => {
    if (menu.current?.contains(document.activeElement)) menu.current.querySelector('button')?.focus();
    setOpen(false);
  };
  useEffect(close, [address.value]);
  useEffect(() => {
    if (!isOpen) return;
    const closeOutside = ({ target }: Event): void => {
      if (target instanceof Node && !menu.current?.contains(target)) setOpen(false);
    };
    const events = ['pointerdown', 'focusin'];
    for (const event of events) addEventListener(event, closeOutside);
    return () => {
      for (const event of events) removeEventListener(event, closeOutside);
    };
  }, [isOpen]);
  const press = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') close();
    else if (!moveFocus(event)) return;
    event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: The keys belong to the controls in the menu.
    <div ref={menu} class="menu" data-own-arrows onKeyDown={isOpen ? press : undefined}>
      <button
        type="button"
        class="button"
        title={name}
        aria-label={value === undefined ? name : `${name}: ${value}`}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name={icon} />
        <span class={value === undefined ? 'wide-only' : ''}>{value ?? name}</span>
      </button>
      <div id={id} class="menu-panel popup" role="group" aria-label={name} tabIndex={-1} hidden={!isOpen}>
        {isOpen && <Panel />}
      </div>
    </div>
  );
}

/** Moves the focus to the next or previous control of the menu if an arrow key was pressed outside a text box. */
function moveFocus({ key, target, currentTarget }: KeyboardEvent): boolean {
  const step = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0;
  if (step === 0 || !(target instanceof HTMLElement && currentTarget instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement && target.type !== 'checkbox') return false;
  const controls = [...currentTarget.querySelectorAll<HTMLElement>('button, a, input')];
  controls.at((controls.indexOf(target) + step) % controls.length)?.focus();
  return true;
}
