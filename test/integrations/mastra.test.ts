// The events that Mastra sends to a bridge, in any order of the spans of several generations.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RunspanBridge } from '#src/mastra.ts';
import { recordRuns } from '#src/testing.ts';

type Events = readonly (readonly [type: string, span: object])[];

/** A generation with one model call, below an agent or below no span. */
function generation(name: string, parentSpanId: string | undefined): Events {
  const ids = [`${name}-generation`, `${name}-step`, `${name}-call`];
  const types = ['model_generation', 'model_step', 'model_inference'];
  const spans = ids.map((id, at) => ({ id, type: types[at], name, parentSpanId: ids[at - 1] ?? parentSpanId }));
  const ended = spans.toReversed().map((span) => ({ ...span, output: { text: name } }));
  return [
    ...spans.map((span) => ['span_started', span] as const),
    ...ended.map((span) => ['span_ended', span] as const),
  ];
}

test('the end of a generation ends no model call of another one', async () => {
  const generations = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,5}$/), { minLength: 2, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(generations, fc.boolean(), fc.infiniteStream(fc.nat(3)), async (names, isInAgent, picks) => {
      using recorder = recordRuns();
      const bridge = new RunspanBridge();
      const send = ([type, exportedSpan]: Events[number]) => bridge.exportTracingEvent({ type, exportedSpan });
      const agent = { id: 'agent', type: 'agent_run', name: "agent run: 'a'" };
      if (isInAgent) await send(['span_started', agent]);
      const queues = names.map((name) => [...generation(name, isInAgent ? 'agent' : undefined)]);
      for (const pick of picks) {
        const open = queues.filter(({ length }) => length > 0);
        if (open.length === 0) break;
        await send(open[pick % open.length]?.shift() as Events[number]);
      }
      if (isInAgent) await send(['span_ended', agent]);

      const calls = recorder.runs.filter(({ run_type }) => run_type === 'llm');
      const ended = calls.map(({ outputs, error }) => `${outputs?.text} ${error}`);
      expect(ended.sort()).toEqual(names.map((name) => `${name} undefined`).sort());
    }),
  );
});
