import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Fields, fieldsOf, isFields, listOf, numberOf, textOf, without } from '../../payload/fields.ts';
import type { RunDetails } from '../../receiver/domain/run-view.ts';
import { messagesOfInputs, messagesOfOutputs } from '../../services/conversation.ts';
import { payloadUrl } from '../data/api.ts';
import { usePayload } from '../data/payloads.ts';
import { isMarkdown, toggle } from '../data/preferences.ts';
import { saved } from '../data/trace-file.ts';
import { Paged, Pairs, Pending, Section, Switch } from '../elements/controls.tsx';
import { bytes, plural } from '../elements/figures.ts';
import { Icon } from '../elements/icon.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { CallSettings } from '../payload/call-view.tsx';
import { ConversationView, Reading } from '../payload/conversation-view.tsx';
import { documentsOf, type FoundDocument } from '../payload/documents.ts';
import { JsonTree, printed } from '../payload/json-tree.tsx';

type Field = 'inputs' | 'outputs';

interface Form {
  readonly name: 'Messages' | 'Documents' | 'Text' | 'JSON';
  readonly render: (run: RunDetails) => JSX.Element;
}

/** The display form that the user last chose, by run type and field. */
const chosen: Signal<Readonly<Record<string, string>>> = signal({});

const TEXT_FIELDS_MAX = 50;
const DOCUMENTS_PAGE = 20;

/** Shows inputs or outputs in a suitable form, or as JSON if `isJson`. Fetches them when they become visible. */
export function PayloadSection(props: { run: RunDetails; field: Field; isJson?: boolean }): JSX.Element | null {
  const { run, field, isJson = false } = props;
  const size = run.payload_sizes[field];
  const element = useRef<HTMLDivElement>(null);
  const isVisible = useVisible(element);
  const { value, problem } = usePayload(run, field, isVisible);
  const all = useMemo(() => (value === undefined ? [] : formsOf(run, field, value)), [value]);
  const forms = isJson ? all.filter(({ name }) => name === 'JSON') : all;
  if (size === undefined) return null;
  const choice = `${run.run_type} ${field}`;
  const form = forms.find(({ name }) => name === chosen.value[choice]) ?? forms[0];
  const controls = (
    <>
      {form !== undefined && form.name !== 'JSON' && <MarkdownBox />}
      {forms.length > 1 && (
        <Switch
          label={`Show the ${field} as`}
          names={forms.map(({ name }) => name)}
          shown={form?.name}
          show={(name) => {
            chosen.value = { ...chosen.value, [choice]: name };
          }}
        />
      )}
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

export function MarkdownBox(): JSX.Element {
  return (
    <label class="line small" title="Render text as Markdown (m)">
      <input type="checkbox" checked={isMarkdown.value} onChange={() => toggle(isMarkdown)} />
      Markdown
    </label>
  );
}

/** Returns the possible display forms for a payload, default form first. */
export function formsOf(run: RunDetails, field: Field, value: unknown): Form[] {
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
    forms.push({
      name: 'Text',
      render: () => <TextFields fields={without(value, FACTS)} facts={answerFacts(value)} />,
    });
  }
  const json: Form = { name: 'JSON', render: () => <JsonTree value={value} path={`$.${field}`} /> };
  const isAnswer = field === 'outputs' && (runType === 'chain' || run.parent_run_id === undefined);
  const isRead = isListed || (isAnswer && isOneText(value, run.payload_sizes[field]));
  const isJsonLast = isRead || runType === 'llm' || runType === 'retriever' || runType === 'prompt';
  return isJsonLast ? [...forms, json] : [json, ...forms];
}

/** Fields of an answer that say how it came about. */
const FACTS: ReadonlySet<string> = new Set(['finishReason', 'finish_reason', 'steps', 'usage', 'usage_metadata']);

/** Returns how an answer came about, for example `3 steps` and `finish reason stop`. */
export function answerFacts(outputs: unknown): string[] {
  const { finishReason, finish_reason: reason = finishReason, steps } = fieldsOf(outputs);
  const count = numberOf(steps) ?? listOf(steps).length;
  return [
    ...(count > 0 ? [plural(count, 'step')] : []),
    ...(reason ? [`finish reason ${textOf(reason) ?? printed(reason, 80)}`] : []),
  ];
}

/** Returns whether a text is the only value of a payload, or more than half of its JSON. */
function isOneText(payload: unknown, size = 0): boolean {
  const values = Object.values(fieldsOf(payload));
  return values.some((one) => typeof one === 'string' && (values.length === 1 || one.length > size / 2));
}

function TextFields({ fields, facts }: { fields: Fields; facts: readonly string[] }): JSX.Element {
  return (
    <>
      {facts.length > 0 && <p class="note small">{visibleText(facts.join(' · '))}</p>}
      <Pairs
        class="pairs text-fields"
        pairs={Object.entries(fields)
          .slice(0, TEXT_FIELDS_MAX)
          .map(([key, value]) => [
            key,
            typeof value === 'string' ? <Reading text={value} /> : <JsonTree value={value} />,
          ])}
      />
    </>
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
              <strong>{title === undefined ? `Document ${index + 1}` : visibleText(title)}</strong>
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
