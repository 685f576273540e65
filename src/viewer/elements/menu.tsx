import type { JSX } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { address } from '../data/navigation.ts';
import { Icon } from './icon.tsx';

interface MenuProps {
  name: string;
  icon: string;
  /** Text of the button. Without a text, the button shows the name, or only the icon if the screen is narrow. */
  value?: string;
  panel: JSX.Element;
}

/** A button that opens a panel. The panel closes after a click elsewhere, Escape, or a change of the address. */
export function Menu({ name, icon, value, panel }: MenuProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const popover = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => popover.current?.hidePopover(), [address.value]);
  const label = value === undefined ? name : `${name}: ${value}`;
  return (
    <>
      <button type="button" class="button" title={name} aria-label={label} popoverTarget={id}>
        <Icon name={icon} />
        <span class={value === undefined ? 'wide-only' : ''}>{value ?? name}</span>
      </button>
      <div
        ref={popover}
        id={id}
        popover="auto"
        class="menu popup"
        role="group"
        aria-label={name}
        data-own-arrows
        onToggle={({ newState }) => setOpen(newState === 'open')}
      >
        {isOpen && panel}
      </div>
    </>
  );
}
