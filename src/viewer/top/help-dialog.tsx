import type { JSX } from 'preact';
import { KEYS as FILTER_KEYS } from '../data/filter.ts';
import { Pairs } from '../elements/controls.tsx';
import { Dialog } from '../elements/dialog.tsx';

const KEYS: readonly (readonly [string, string])[] = [
  ['j k  or  ↓ ↑', 'next and previous row'],
  ['Enter', 'open the trace; in a trace, go to the run'],
  ['h l  or  ← →', 'collapse and expand, or go to the parent and the first child'],
  ['[ ]', 'collapse all, expand all'],
  ['Home End', 'first and last row'],
  ['/', 'filter; in a trace, search'],
  ['e', 'in a trace: errors only'],
  ['n', 'in a trace: next error'],
  ['m', 'Markdown or plain text'],
  ['c', 'compare two runs: press this key on each run'],
  ['x', 'in a list of runspan dev: select the row'],
  ['g t', 'traces'],
  ['g r', 'all runs'],
  ['g h', 'threads'],
  ['g u', 'users'],
  ['g s', 'statistics'],
  ['Esc', 'go back, close, or leave the text box'],
  ['?', 'this help'],
];

const TEXT_SEARCH = [
  'refund "late order"',
  'text in names, errors, inputs, outputs, tags and metadata; quotes match a phrase',
] as const;

export default function HelpDialog(): JSX.Element {
  return (
    <Dialog title="Help" closeLabel="Close">
      <h2>Keyboard shortcuts</h2>
      <Pairs pairs={KEYS} />
      <h2>Filter</h2>
      <Pairs pairs={[...FILTER_KEYS.map(({ key, about }) => [key, about] as const), TEXT_SEARCH]} />
    </Dialog>
  );
}
