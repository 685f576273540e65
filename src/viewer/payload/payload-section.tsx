import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { RunDetails } from '../../receiver/store/run-view.ts';
import { payloadUrl } from '../data/api.ts';
import { useLoaded } from '../data/live-value.ts';
import { payload, payloadKey } from '../data/payloads.ts';
import { bytes } from '../elements/figures.ts';
import { Icon } from '../elements/icon.tsx';
import { visible } from '../elements/visible-text.ts';
import { messagesOfInputs, messagesOfOutputs } from './conversation.ts';
import { ConversationView } from './conversation-view.tsx';
import { DocumentList } from './document-list.tsx';
import { documentsOf } from './documents.ts';
import { JsonTree } from './json-tree.tsx';
import { isFields } from './message.ts';
import { isMarkdown, Reading } from './reading.tsx';

type Form = 'conversation' | 'documents' | 'text' | 'json';
type Field = 'inputs' | 'outputs';

/** What the reader chose last, by kind of run and payload. */
const chosen: Signal<Readonly<Record<string, Form>>> = signal({});

/** Inputs or outputs of a run, fetched when they come into sight, in the form that fits them. */
export function PayloadSection({ run, field }: { run: RunDetails; field: Field }): JSX.Element | null {
  const size = run.payload_sizes[field];
  const element = useRef<HTMLElement>(null);
  const isSeen = useSeen(element);
  const key = isSeen ? payloadKey(run, field) : undefined;
  const { value, problem } = useLoaded(key, (signal) => payload(run, field, signal));
  const forms = useMemo(() => (value === undefined ? [] : formsOf(run.run_type, field, value)), [value]);
  if (size === undefined) return null;
  const wanted = chosen.value[`${run.run_type} ${field}`];
  const form = forms.find(({ name }) => name === wanted) ?? forms[0];
  const title = field === 'inputs' ? 'Inputs' : 'Outputs';
  return (
    <section ref={element} class="section" aria-label={title}>
      <header>
        <h3>{title}</h3>
        <span class="note">{bytes(size)}</span>
        <span class="space" />
        {form !== undefined && form.name !== 'json' && (
          <button
            type="button"
            class="tab"
            aria-pressed={isMarkdown.value}
            title="Text laid out as Markdown, or as it is (m)"
            onClick={() => {
              isMarkdown.value = !isMarkdown.value;
            }}
          >
            Markdown
          </button>
        )}
        {forms.length > 1 &&
          forms.map(({ name }) => (
            <button
              type="button"
              key={name}
              class="tab"
              aria-pressed={name === form?.name}
              onClick={() => {
                chosen.value = { ...chosen.value, [`${run.run_type} ${field}`]: name };
              }}
            >
              {NAMES[name]}
            </button>
          ))}
        <a
          class="button quiet"
          href={payloadUrl(run.id, field)}
          download={`${field}.json`}
          aria-label={`Download the ${field}`}
        >
          <Icon name="download" />
        </a>
      </header>
      {problem !== undefined && <p class="problem">{problem}</p>}
      {problem === undefined && form === undefined && <p class="loading">Loading {bytes(size)}…</p>}
      {form?.view(run)}
    </section>
  );
}

const NAMES: Readonly<Record<Form, string>> = {
  conversation: 'Messages',
  documents: 'Documents',
  text: 'Text',
  json: 'JSON',
};

/** The forms that a payload can be shown in, the fitting one first. */
function formsOf(
  runType: string,
  field: Field,
  value: unknown,
): { name: Form; view: (run: RunDetails) => JSX.Element }[] {
  const json = { name: 'json' as const, view: () => <JsonTree value={value} path={`$.${field}`} /> };
  const messages = field === 'inputs' ? messagesOfInputs(value) : messagesOfOutputs(value);
  const documents = field === 'outputs' ? documentsOf(value) : undefined;
  const forms = [];
  if (documents !== undefined && (runType === 'retriever' || messages === undefined)) {
    forms.push({ name: 'documents' as const, view: () => <DocumentList documents={documents} /> });
  }
  // One text is a message of a model, and of others a text, unless it stands among messages.
  const isListed = isFields(value) && Array.isArray(value.messages);
  if (messages !== undefined && messages.length > (runType === 'llm' || isListed ? 0 : 1)) {
    const view = (run: RunDetails): JSX.Element => (
      <ConversationView messages={messages} attached={{ runId: run.id, attachments: run.attachments ?? [] }} />
    );
    forms.push({ name: 'conversation' as const, view });
  } else if (hasText(value)) forms.push({ name: 'text' as const, view: () => <TextFields value={value} /> });
  const isModel = runType === 'llm' || runType === 'retriever' || runType === 'prompt';
  return isModel ? [...forms, json] : [json, ...forms];
}

function hasText(value: unknown): boolean {
  return isFields(value) && Object.values(value).some((one) => typeof one === 'string' && one.length > 0);
}

/** Text of the fields for reading, and what else there is as JSON. */
function TextFields({ value }: { value: unknown }): JSX.Element {
  return (
    <dl class="text-fields">
      {Object.entries(value as object)
        .slice(0, 50)
        .map(([key, one]) => (
          <div key={key}>
            <dt>{visible(key)}</dt>
            <dd>{typeof one === 'string' ? <Reading text={one} /> : <JsonTree value={one} />}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Whether an element has come into sight, or close to it. */
function useSeen(element: { current: HTMLElement | null }): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (element.current === null) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        setSeen(true);
        observer.disconnect();
      },
      { rootMargin: '200px' },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return isSeen;
}
