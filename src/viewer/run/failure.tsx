import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { saved } from '../data/trace-file.ts';
import { Command, CopyButton, Paged } from '../elements/controls.tsx';
import { plural } from '../elements/figures.ts';
import { LongText, Text } from '../elements/text.tsx';
import { visibleText } from '../elements/visible-text.ts';

/** Number of the application's frames to show at first. */
const FRAMES_PAGE = 12;
/** What precedes a cause, as runspan and Java write it, and as Node prints it. */
const CAUSED_BY = /\n[ \t]*(?:Caused by|\[cause\]): /;
/** Frames of packages and of Node.js. */
const FOREIGN = /node_modules|\bnode:|<anonymous>\)?$/;
const FRAME = /^\s+at (?:async )?(?:(.+) \()?(?:file:\/\/)?(.+?)\)?$/;

/** The parts of an error text, as `Name: message`, stack, and causes. */
export interface Failure {
  /** The message of the deepest cause. If there is only one error, its first line. */
  readonly headline: string;
  /** What follows the headline and is neither a frame nor a cause. */
  readonly rest: string;
  /** The first line of each error, the deepest cause first. Empty if there is only one error. */
  readonly chain: readonly string[];
  readonly own: readonly string[];
  readonly foreign: readonly string[];
}

export function parsedFailure(error: string): Failure {
  const parts = error.split(CAUSED_BY).toReversed();
  const lines = parts.flatMap((part) => part.split('\n').slice(1));
  const frames = [...new Set(lines.filter((line) => FRAME.test(line)))];
  const [first = '', ...more] = (parts[0] ?? '').split('\n').filter((line) => !FRAME.test(line));
  return {
    headline: parts.length === 1 ? first : first.replace(/^[\w.$]+: (?=\S)/, ''),
    rest: more.join('\n').trim(),
    chain: parts.length === 1 ? [] : parts.map((part) => part.split('\n', 1)[0] ?? ''),
    own: frames.filter((line) => !FOREIGN.test(line)),
    foreign: frames.filter((line) => FOREIGN.test(line)),
  };
}

/** Shows why a run failed: the deepest cause, what it led to, and the frames of the application. */
export function FailureView(props: { error: string; traceId: string; isBrief?: boolean }): JSX.Element {
  const { error, traceId, isBrief = false } = props;
  const { headline, rest, chain, own, foreign } = useMemo(() => parsedFailure(error), [error]);
  if (isBrief) return <p class="headline">{visibleText(headline)}</p>;
  return (
    <div class="failure">
      <p class="headline">
        <LongText value={headline} />
        <CopyButton text={() => error} label="Copy the error" />
      </p>
      {rest !== '' && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolled region needs keyboard focus.
        <pre class="stack" tabIndex={0}>
          <LongText value={rest} />
        </pre>
      )}
      <ol class="chain" aria-label="Causes, the deepest first">
        {chain.map((line, index) => (
          <li key={index}>
            <span>{index === 0 ? 'cause' : 'led to'}</span>
            <code>
              <Text value={line.slice(0, 1_000)} />
            </code>
          </li>
        ))}
      </ol>
      <ul class="frames">
        <Paged items={own} page={FRAMES_PAGE}>
          {(line) => <Frame key={line} line={line} />}
        </Paged>
      </ul>
      {foreign.length > 0 && (
        <details>
          <summary>{plural(foreign.length, 'frame')} in node_modules and node:</summary>
          <ul class="frames">
            {foreign.map((line) => (
              <Frame key={line} line={line} />
            ))}
          </ul>
        </details>
      )}
      {saved === undefined && <MakeTest traceId={traceId} />}
    </div>
  );
}

function Frame({ line }: { line: string }): JSX.Element {
  const [, name = '', place = ''] = FRAME.exec(line) ?? [];
  return (
    <li>
      <code>
        <b>{visibleText(name)}</b> {visibleText(place)}
      </code>
    </li>
  );
}

function MakeTest({ traceId }: { traceId: string }): JSX.Element {
  return (
    <div class="test">
      <strong>Make a test</strong>
      <span class="note small">that fails until the cause is fixed</span>
      <Command text={`npx runspan test ${traceId}`} />
    </div>
  );
}
