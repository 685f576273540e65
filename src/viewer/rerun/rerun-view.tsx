import './rerun.css';
import '../payload/payload.css';
import { signal } from '@preact/signals';
import { diffWordsWithSpace } from 'diff';
import type { JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { exactJson, type Fields, fieldsOf, firstText, isFields, parseExact, without } from '../../payload/fields.ts';
import { pathSegment } from '../../receiver/domain/path-segment.ts';
import type { RunDetails } from '../../receiver/domain/run-view.ts';
import { messagesOfInputs, messagesOfOutputs } from '../../services/conversation.ts';
import { api, attachmentUrl, getJson, parseResponse, problemOf } from '../data/api.ts';
import { useLive } from '../data/live-value.ts';
import { address, back } from '../data/navigation.ts';
import { usePayload } from '../data/payloads.ts';
import { Button, CopyButton, Pending, Problem, Switch } from '../elements/controls.tsx';
import { useFocus, useKeys } from '../elements/keys.ts';
import { LongText } from '../elements/text.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { ConversationView } from '../payload/conversation-view.tsx';
import { exchangeOf, RerunLine } from '../run/run-panel.tsx';
import { type Path, pathsOfTexts, textOfPart, valueAt, withValue } from './request-texts.ts';

/** Matches what the recorder leaves in place of secrets, files and long texts. */
const MARKS = /\[(?:Redacted|(?:Attachment|Truncated)\b[^\]"]*)\]/g;

type Rerun = Awaited<ReturnType<typeof readRerun>>;

/** The call that was last edited. Kept while the page shows something else. */
let last: Rerun | undefined;

/** Edits a recorded model call, sends it again, and shows how the answers differ. */
export default function RerunView(): JSX.Element {
  const id = address.value.run ?? '';
  const { value, problem } = useLive(id, async (signal) => {
    if (last?.run.id !== id) last = await readRerun(id, signal);
    // The fields show the request again, which has only valid values.
    last.invalid.value = {};
    return last;
  });
  useKeys({ Escape: back });
  return value?.run.id === id ? <Editor key={id} rerun={value} /> : <Pending problem={problem} note="Loading…" />;
}

async function readRerun(id: string, abort: AbortSignal) {
  const run = await api.run(id, abort);
  const exchange = attachmentUrl(id, `${exchangeOf(run)}`) ?? '';
  const { url, request } = fieldsOf(await getJson(exchange, abort));
  return {
    ...{ run, url: firstText(url) ?? '', recorded: fieldsOf(request), request: signal(fieldsOf(request)) },
    /** Why the text in a field is not valid, by the path of the field. */
    invalid: signal<Fields>({}),
    /** The text of each answer so far. After its end, also the id of its run, and why it failed. */
    samples: signal<readonly Partial<Record<'text' | 'run_id' | 'error', string>>[]>([]),
    abort: signal<AbortController | undefined>(undefined),
  };
}

function Editor({ rerun }: { rerun: Rerun }): JSX.Element {
  const { run, url, abort, invalid } = rerun;
  const [size, setSize] = useState(1);
  const [form, setForm] = useState<'Messages' | 'JSON'>('Messages');
  const element = useRef<HTMLElement>(null);
  useFocus(element);
  const isValid = Object.keys(invalid.value).length === 0;
  return (
    <section ref={element} class="column" aria-label="Run again" tabIndex={-1}>
      <header class="line compare-head">
        <Button icon="back" text="Back" class="button quiet" title="Back (Esc)" onClick={back} />
        <h1 class="clip">Run {visibleText(run.name)} again</h1>
        <span class="note clip space">{visibleText(url)}</span>
        <Switch label="Edit as" names={['Messages', 'JSON']} shown={form} show={(next) => isValid && setForm(next)} />
        <label class="line">
          Samples: {size}
          <input type="range" min="1" max="10" value={size} onInput={(event) => setSize(+event.currentTarget.value)} />
        </label>
        <Button text="Run" disabled={!isValid || abort.value !== undefined} onClick={() => void send(rerun, size)} />
        <Button text="Stop" disabled={abort.value === undefined} onClick={() => abort.value?.abort()} />
      </header>
      <div class="rerun">
        <section aria-label="Request">
          {form === 'JSON' ? <Field rerun={rerun} path={[]} /> : <MessageFields rerun={rerun} />}
        </section>
        <Answers rerun={rerun} />
      </div>
    </section>
  );
}

/** Sends the edited request `count` times. The samples of the rerun follow the lines of the response. */
async function send({ run, request, samples, abort }: Rerun, count: number): Promise<void> {
  abort.value = new AbortController();
  const body = exactJson({ request: request.value, samples: count });
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body, signal: abort.value.signal };
  samples.value = Array.from({ length: count }, () => ({}));
  try {
    const response = await fetch(`/query/runs/${pathSegment(run.id)}/rerun`, init);
    if (!response.ok) await parseResponse(response);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = '', read = await reader?.read(); read?.done === false; read = await reader?.read()) {
      const lines = (rest + read.value).split('\n');
      rest = lines.pop() ?? '';
      for (const { sample, ...change } of lines.map((line) => JSON.parse(line)))
        samples.value = samples.value.map((one, at) => (at === sample ? { ...one, ...change } : one));
    }
  } catch (error) {
    samples.value = samples.value.map((one) => (one.run_id ? one : { error: problemOf(error) ?? 'Stopped', ...one }));
  }
  abort.value = undefined;
}

/** Fields for the texts of messages, and for each other field of the request. */
function MessageFields({ rerun }: { rerun: Rerun }): JSX.Element {
  const [request] = useState(rerun.request.peek());
  const messages = useMemo(() => messagesOfInputs(request) ?? [], []);
  const paths = useMemo(() => pathsOfTexts(request, messages), []);
  const others = Object.keys(without(request, new Set([...paths.values()].map(([key = '']) => key))));
  const isLong = (key: string): boolean => typeof request[key] === 'object';
  const edit = (path: Path | undefined) => path && <Field key={path.join('.')} rerun={rerun} path={path} />;
  return (
    <>
      {others.filter((key) => !isLong(key)).map((key) => edit([key]))}
      <ConversationView messages={messages} run={rerun.run} edit={(part) => edit(paths.get(part))} />
      {others.filter(isLong).map((key) => edit([key]))}
    </>
  );
}

/** A field for a text, or for any other value as JSON. An empty field for JSON leaves the value out of the request. */
function Field({ rerun: { request, invalid }, path }: { rerun: Rerun; path: Path }): JSX.Element {
  const [value] = useState(() => valueAt(request.peek(), path));
  const isText = typeof value === 'string';
  // A value that was left out has no JSON.
  const text = isText ? value : value === undefined ? '' : exactJson(value, 2);
  const name = path.join('.');
  const edit = ({ currentTarget: { value: next } }: { currentTarget: { value: string } }): void => {
    const others = without(invalid.value, new Set([name]));
    // The line ends of a text area are line feeds.
    const typed = text.includes('\r\n') ? next.replaceAll('\n', '\r\n') : next;
    try {
      const body = withValue(request.value, path, isText ? typed : next === '' ? undefined : parseExact(next));
      if (!isFields(body)) throw new SyntaxError('Expected an object');
      request.value = body;
      invalid.value = others;
    } catch (error) {
      invalid.value = { ...others, [name]: `This is not valid: ${(error as Error).message}` };
    }
  };
  const Element = path.length === 1 && /^.{0,99}$/.test(text) ? 'input' : 'textarea';
  return (
    <div class="rerun-field">
      {path.length === 1 && <span class="note">{visibleText(name)}</span>}
      <Element aria-label={visibleText(name) || 'request'} defaultValue={text} onInput={edit} />
      <Problem text={visibleText(`${invalid.value[name] ?? ''}`) || undefined} />
    </div>
  );
}

function Answers({ rerun }: { rerun: Rerun }): JSX.Element {
  const { samples, recorded, abort } = rerun;
  const request = rerun.request.value;
  const marks = useMemo(() => [...new Set(exactJson(request).match(MARKS))].join(', '), [request]);
  const copied = (): string => changedTexts(recorded, request).join('\n\n');
  return (
    <section aria-label="Answers">
      {marks !== '' && <p class="note">The service gets these marks, not what they replace: {visibleText(marks)}</p>}
      {[-1, ...samples.value.keys()].map((at) => (
        <Answer key={at} rerun={rerun} at={at} />
      ))}
      {abort.value === undefined && samples.value.length > 0 && exactJson(request) !== exactJson(recorded) && (
        <p class="note line" role="status">
          Your program still sends the old request.
          {copied() !== '' && <CopyButton text={copied} label="Copy changed texts" word="Copy changed texts" />}
        </p>
      )}
    </section>
  );
}

/** An answer while it arrives, and then its difference from the recorded one, which is shown first, at -1. */
function Answer({ rerun, at }: { rerun: Rerun; at: number }): JSX.Element {
  const title = at < 0 ? 'Recorded answer' : `Answer ${at + 1}`;
  const { text = '', run_id: id, error } = rerun.samples.value[at] ?? { run_id: rerun.run.id };
  const { value: run } = useLive(id, (signal) => api.run(`${id}`, signal));
  const before = useAnswer(rerun.run);
  const after = useAnswer(run);
  const changes = useMemo(
    () => before !== undefined && after !== undefined && diffWordsWithSpace(before, after, { timeout: 200 }),
    [before, after],
  );
  const shown = (run?.status === 'success' && changes) || [{ value: after || text, removed: false, added: false }];
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {run !== undefined && <RerunLine run={run} base={rerun.run.id} />}
      <Problem text={error && visibleText(run?.error ?? error)} />
      <p class="plain">
        {shown.map(({ removed, added, value }, index) => {
          const Element = removed ? 'del' : added ? 'ins' : 'span';
          return (
            <Element key={index}>
              <LongText value={value} />
            </Element>
          );
        })}
      </p>
    </section>
  );
}

/** Reads the text of a run's answer, with a line for each tool call. Undefined until it is read. */
function useAnswer(run: RunDetails | undefined): string | undefined {
  const { value } = usePayload(run, 'outputs', true);
  if (value === undefined) return undefined;
  const messages = messagesOfOutputs(value) ?? [];
  const parts = messages.flatMap((message) => message.parts).filter(({ kind }) => kind !== 'reasoning');
  return parts.map((part) => (part.kind === 'call' ? part.name + exactJson(part.input) : textOfPart(part))).join('\n');
}

/** Returns the texts of a request that differ from the recorded ones. */
function changedTexts(before: unknown, after: unknown): string[] {
  if (typeof after === 'string') return before === after ? [] : [after];
  return Object.entries(Object(after)).flatMap(([key, value]) => changedTexts(valueAt(before, [key]), value));
}
