import type { JSX } from 'preact';
import type { PayloadField } from '../../receiver/domain/run-view.ts';
import type { DerivedTool } from '../../receiver/domain/trace/derived-tools.ts';
import { messagesOfInputs, messagesOfOutputs } from '../../services/conversation.ts';
import type { Part } from '../../services/message.ts';
import { api } from '../data/api.ts';
import { useLive } from '../data/live-value.ts';
import { go } from '../data/navigation.ts';
import { usePayload } from '../data/payloads.ts';
import { Button, Section } from '../elements/controls.tsx';
import { latencyOf } from '../elements/figures.ts';
import { Icon, StatusMark } from '../elements/icon.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { Parts } from '../payload/conversation-view.tsx';
import { DerivedMark } from '../trace/trace-tree.tsx';

/** Panel of a tool that no run records, with the messages of the two model calls that tell of it. */
export function DerivedPanel({ tool }: { tool: DerivedTool }): JSX.Element {
  const { id, name, arguments: input, result, is_error: isError, after_run_id: after, before_run_id: before } = tool;
  const status = isError ? 'error' : 'success';
  return (
    <article class="panel scroll" aria-label={`Tool ${visibleText(name)}`} tabIndex={-1} data-own-arrows>
      <header class="line panel-head pinned">
        <span class="kind kind-tool">
          <Icon name="tool" />
        </span>
        <h2 class="clip" title={visibleText(name)}>
          {visibleText(name)}
        </h2>
        {status === 'error' && <StatusMark status={status} />}
        <DerivedMark />
      </header>
      <p class="note small">
        No run records this tool. The two model calls before and after it tell of it. It took at most{' '}
        {latencyOf({ ...tool, status })}.
      </p>
      <Message title="Inputs" field="outputs" runId={after} link="Model call that asked for it">
        {{ id, part: { kind: 'call', name, input } }}
      </Message>
      <Message title="Outputs" field="inputs" runId={before} link="Model call that got the result">
        {{ id, part: { kind: 'result', name, value: result, isError } }}
      </Message>
    </article>
  );
}

/** A message of a model call. Shows the known beginning of the message until the payload of the call arrives. */
function Message(props: {
  title: string;
  field: PayloadField;
  runId: string;
  link: string;
  children: { readonly id: string; readonly part: Part };
}): JSX.Element {
  const { title, field, runId, link, children: known } = props;
  const { value: run } = useLive(runId, (signal) => api.run(runId, signal));
  const { value: payload } = usePayload(run, field, true);
  const messages = (field === 'inputs' ? messagesOfInputs(payload) : messagesOfOutputs(payload)) ?? [];
  const isSame = (part: Part): boolean => part.kind === known.part.kind && 'id' in part && part.id === known.id;
  const part = messages.flatMap(({ parts }) => parts).findLast(isSame) ?? known.part;
  const leadsToCall = <Button text={link} class="link" onClick={() => go({ run: runId }, { replace: true })} />;
  return (
    <Section title={title} controls={leadsToCall}>
      <Parts parts={[part]} run={run ?? { id: runId }} />
    </Section>
  );
}
