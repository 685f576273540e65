import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { fieldsOf, isFields } from '../../payload/fields.ts';
import type { RunDetails } from '../../receiver/domain/run-view.ts';
import { messagesOfInputs, messagesOfOutputs } from '../../services/conversation.ts';
import { payloadUrl } from '../data/api.ts';
import { usePayload } from '../data/payloads.ts';
import { isMarkdown } from '../data/preferences.ts';
import { saved } from '../data/trace-file.ts';
import { Paged, Pending, Section, Toggle } from '../elements/controls.tsx';
import { bytes } from '../elements/figures.ts';
import { Icon } from '../elements/icon.tsx';
import { visible } from '../elements/visible-text.ts';
import { CallSettings } from '../payload/call-view.tsx';
import { ConversationView, Reading } from '../payload/conversation-view.tsx';
import { documentsOf, type FoundDocument } from '../payload/documents.ts';
import { JsonTree } from '../payload/json-tree.tsx';

type Field = 'inputs' | 'outputs';

interface Form {
  readonly name: 'Messages' | 'Documents' | 'Text' | 'JSON';
  readonly render: (run: RunDetails) => JSX.Element;
}

/** The display form that the user last chose, by run type and field. */
const chosen: Signal<Readonly<Record<string, string>>> = signal({});

const TEXT_FIELDS_MAX = 50;
const DOCUMENTS_PAGE = 20;

/**
 * Section that shows a run's inputs or outputs in a suitable form. Fetches the payload when the section becomes
 * visible.
 */
export function PayloadSection({ run, field }: { run: RunDetails; field: Field }): JSX.Element | null {
  const size = run.payload_sizes[field];
  const element = useRef<HTMLDivElement>(null);
  const isVisible = useVisible(element);
  const { value, problem } = usePayload(run, field, isVisible);
  const forms = useMemo(() => (value === undefined ? [] : formsOf(run, field, value)), [value]);
  if (size === undefined) return null;
  const choice = `${run.run_type} ${field}`;
  const form = forms.find(({ name }) => name === chosen.value[choice]) ?? forms[0];
  const controls = (
    <>
      {form !== undefined && form.name !== 'JSON' && (
        <Toggle isOn={isMarkdown.value} title="Render text as Markdown (m)" toggle={toggleMarkdown}>
          Markdown
        </Toggle>
      )}
      {forms.length > 1 &&
        forms.map(({ name }) => (
          <Toggle
            key={name}
            isOn={name === form?.name}
            toggle={() => {
              chosen.value = { ...chosen.value, [choice]: name };
            }}
          >
            {name}
          </Toggle>
        ))}
      {saved === undefined && (
        <a
          class="button quiet"
          href={payloadUrl(run.id, field)}
          download={`${field}.json`}
          aria-label={`Download the ${field}`}
        >
          <Icon name="download" />
        </a>
      )}
    </>
  );
  return (
    <div ref={element}>
      <Section title={field === 'inputs' ? 'Inputs' : 'Outputs'} note={bytes(size)} controls={controls}>
        {form?.render(run) ?? <Pending problem={problem} note={`Loading ${bytes(size)}…`} />}
      </Section>
    </div>
  );
}

export function toggleMarkdown(): void {
  isMarkdown.value = !isMarkdown.value;
}

/** Returns the possible display forms for a payload, default form first. */
function formsOf(run: RunDetails, field: Field, value: unknown): Form[] {
  const runType = run.run_type;
  const forms: Form[] = [];
  const messages = field === 'inputs' ? messagesOfInputs(value) : messagesOfOutputs(value);
  const documents = field === 'outputs' ? documentsOf(value) : undefined;
  if (documents !== undefined && (runType === 'retriever' || messages === undefined)) {
    forms.push({ name: 'Documents', render: () => <DocumentList documents={documents} /> });
  }
  // Outside model calls, a single text counts as a conversation only if it is in a list of messages.
  const isListed = isFields(value) && Array.isArray(value.messages);
  if (messages !== undefined && messages.length > (runType === 'llm' || isListed ? 0 : 1)) {
    const isCall = runType === 'llm' && field === 'inputs';
    forms.push({
      name: 'Messages',
      render: (run) => (
        <>
          {isCall && <CallSettings run={run} inputs={value} />}
          <ConversationView messages={messages} run={run} />
        </>
      ),
    });
  } else if (isFields(value) && Object.values(value).some((one) => typeof one === 'string' && one !== '')) {
    forms.push({ name: 'Text', render: () => <TextFields fields={value} /> });
  }
  const json: Form = { name: 'JSON', render: () => <JsonTree value={value} path={`$.${field}`} /> };
  const isAnswer = field === 'outputs' && (runType === 'chain' || run.parent_run_id === undefined);
  const isRead = isAnswer && (isListed || isOneText(value, run.payload_sizes[field]));
  const isJsonLast = isRead || runType === 'llm' || runType === 'retriever' || runType === 'prompt';
  return isJsonLast ? [...forms, json] : [json, ...forms];
}

/** Returns whether a text is the only value of a payload, or more than half of its JSON. */
function isOneText(payload: unknown, size = 0): boolean {
  const values = Object.values(fieldsOf(payload));
  return values.some((one) => typeof one === 'string' && (values.length === 1 || one.length > size / 2));
}

function TextFields({ fields }: { fields: Readonly<Record<string, unknown>> }): JSX.Element {
  return (
    <dl class="pairs text-fields">
      {Object.entries(fields)
        .slice(0, TEXT_FIELDS_MAX)
        .map(([key, value]) => (
          <div key={key}>
            <dt>{visible(key)}</dt>
            <dd>{typeof value === 'string' ? <Reading text={value} /> : <JsonTree value={value} />}</dd>
          </div>
        ))}
    </dl>
  );
}

function DocumentList({ documents }: { documents: readonly FoundDocument[] }): JSX.Element {
  if (documents.length === 0) return <p class="note">No documents found.</p>;
  return (
    <ol class="divided">
      <Paged items={documents} page={DOCUMENTS_PAGE}>
        {({ title, text, score, metadata }, index) => (
          <li key={index}>
            <p class="part-head small">
              <strong>{title === undefined ? `Document ${index + 1}` : visible(title)}</strong>
              {score !== undefined && <span class="note"> score {Number(score.toPrecision(4))}</span>}
            </p>
            <Reading text={text} />
            {metadata !== undefined && (
              <details>
                <summary>Metadata</summary>
                <JsonTree value={metadata} />
              </details>
            )}
          </li>
        )}
      </Paged>
    </ol>
  );
}

/** Returns whether the element is or was near the visible area. */
export function useVisible(element: { current: HTMLElement | null }): boolean {
  const [isVisible, setVisible] = useState(false);
  useEffect(() => {
    if (element.current === null) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        setVisible(true);
        observer.disconnect();
      },
      { rootMargin: '200px' },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return isVisible;
}
