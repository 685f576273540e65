import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import { keep, kept } from '../data/preferences.ts';

const KEY = 'runspan.split';
const MIN = 20;
const MAX = 80;
const STEP = 4;

/** Percent of the width that the tree has. */
const split: Signal<number> = signal(bounded(Number(kept(KEY) ?? 52)));

/** The line between tree and run, which can be moved. */
export function Splitter(): JSX.Element {
  useLayoutEffect(() => {
    document.documentElement.style.setProperty('--split', `${split.value}%`);
  }, [split.value]);
  const move = (percent: number): void => {
    split.value = bounded(percent);
    keep(KEY, `${split.value}`);
  };
  return (
    <div
      class="splitter"
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the tree"
      aria-valuenow={Math.round(split.value)}
      aria-valuemin={MIN}
      aria-valuemax={MAX}
      tabIndex={0}
      data-own-arrows
      onKeyDown={({ key }) => {
        if (key === 'ArrowLeft') move(split.value - STEP);
        if (key === 'ArrowRight') move(split.value + STEP);
      }}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) move((event.clientX / innerWidth) * 100);
      }}
    />
  );
}

function bounded(percent: number): number {
  return Number.isFinite(percent) ? Math.max(MIN, Math.min(MAX, percent)) : 52;
}
