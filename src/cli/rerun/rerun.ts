import type { Command } from '@commander-js/extra-typings';
import { visible, visibleJson } from '../../base/text.ts';
import { type Fields, parsedJson } from '../../payload/fields.ts';
import { headlineOf } from '../../receiver/domain/trace/headline.ts';
import { outputsPreview } from '../../receiver/domain/trace/preview.ts';
import { pagePath } from '../../run/page-path.ts';
import { type CommandContext, CommandFailure, collect, pairOf, UsageError, wholeNumber } from '../command-line.ts';
import { ReceiverSource, withSource, withSourceOptions } from '../query/run-source.ts';
import { completeId, idArgument } from '../query/show.ts';
import type { RunSource } from '../stores.ts';
import { counted, visibleLines } from '../terminal-text.ts';
import { durationOf, usageTexts } from '../tree.ts';
import { type RerunEvent, SAMPLES_MAX } from './rerun-events.ts';

const HELP = `
The receiver of runspan dev sends the request, with the key in its environment or in .env. The
answers are runs of a new trace. The recorded trace never changes.

Exit code:
  0 on success; 1 if a sample fails, or the call is unknown or not recorded; 2 for invalid arguments`;

export function define(command: Command, { stdout, endAs }: CommandContext): void {
  withSourceOptions(
    command
      .description('Sends a recorded model call again, with changes.')
      .argument('<id>', 'id of the run of a model call, or of a trace with one model call', idArgument)
      .option('--model <name>', 'another model of the same service')
      .option('--set <path=value>', 'value of a field of the request, e.g. temperature=0; can be repeated', collect)
      .option('--samples <n>', `number of answers, from 1 to ${SAMPLES_MAX}`, wholeNumber(1, SAMPLES_MAX), 1)
      .option('--json', 'print each answer as one line of JSON'),
  )
    .addHelpText('after', HELP)
    .action(async (id, { model, set = [], samples, json, ...options }) => {
      const changes = { set: { ...Object.fromEntries(set.map(assignment)), ...(model && { model }) }, samples };
      await withSource(options, async (found) => {
        const source = receiverIn(found);
        const answers: RerunEvent[] = [];
        for await (const answer of source.rerun(await callIn(source, id), changes)) {
          answers.push(answer);
          stdout.write(json ? `${visibleJson(JSON.stringify(answer))}\n` : `${await answerText(source, answer)}\n`);
        }
        const traceId = answers[0]?.trace_id;
        if (!json && traceId !== undefined) stdout.write(`${source.address}${pagePath({ id: traceId, traceId })}\n`);
        const { run_id: runId } = answers.find(({ error }) => error === undefined) ?? {};
        if (!json && runId !== undefined) stdout.write(`Keep it: npx runspan set add <name> run:${runId} --runs\n`);
        if (answers.length < samples || answers.some(({ error }) => error !== undefined)) endAs(1);
      });
    });
}

/** Returns the receiver that sends calls again. Throws if the source of runs is a file. */
export function receiverIn(source: RunSource): ReceiverSource {
  if (source instanceof ReceiverSource) return source;
  throw new CommandFailure('only the receiver of runspan dev sends a call again: start runspan dev');
}

/** Returns the id of a run, or of the only model call of a trace. */
export async function callIn(source: ReceiverSource, given: string): Promise<string> {
  const id = await completeId(source, given);
  const outline = await source.outline(id);
  const calls = outline.filter(({ run_type: type, same_call_as: head }) => type === 'llm' && head === undefined);
  if (outline.length === 0 || calls.some((call) => call.id === id)) return id;
  if (calls.length === 1) return `${calls[0]?.id}`;
  const ids = calls.map((call) => `\n${call.id} ${visible(call.name)}`);
  throw new CommandFailure(`trace ${id} has ${counted(calls.length, 'model call')}; give the id of one${ids.join('')}`);
}

/** Returns a line with the facts of an answer, and its text, or else its tool calls. */
export async function answerText(source: ReceiverSource, answer: RerunEvent): Promise<string> {
  const { sample, run_id: id, text = '', error } = answer;
  const run = id === undefined ? undefined : await source.details(id);
  const json = run && text === '' && error === undefined ? await source.payload(run.id, 'outputs') : undefined;
  const calls = outputsPreview({ outputs: parsedJson(json) as Fields });
  const facts = run && [run.model, durationOf(run), ...usageTexts(run)];
  const head = [`sample ${sample + 1}`, ...(facts ?? []), error && headlineOf(run?.error ?? error)].filter(Boolean);
  return [visible(head.join(' · ')), visibleLines(text || (calls ?? ''))].filter(Boolean).join('\n');
}

function assignment(text: string): [path: string, value: unknown] {
  const [path, value] = pairOf(text);
  if (path === '' || value === undefined)
    throw new UsageError('expected --set <path>=<value>, for example temperature=0');
  return [path, parsedJson(value)];
}
