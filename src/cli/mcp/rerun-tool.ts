import * as z from 'zod/v4';
import { cut } from '../../base/text.ts';
import { idArgument } from '../query/show.ts';
import { answerText, callIn, receiverIn } from '../rerun/rerun.ts';
import { SAMPLES_MAX } from '../rerun/rerun-events.ts';
import { RECORDED_MAX } from './answer.ts';
import { type Tool, tool } from './tool.ts';

/** Sends requests, which cost money. Served only with `--allow-rerun`. */
export const rerunTool: Tool = tool({
  name: 'rerun_call',
  description:
    'Sends a recorded model call to its service again, with changes, and shows the answers. Each answer costs as much as the call.',
  input: z.strictObject({
    id: z.string().describe('id of the run of a model call, or of a trace with one model call'),
    set: z
      .record(z.string(), z.unknown())
      .default({})
      .describe(
        'values of fields of the request by path, for example {"model": "small", "messages.0.content": "Be brief."}',
      ),
    samples: z.number().int().min(1).max(SAMPLES_MAX).default(1),
  }),
  use: ({ id, set, samples }, read, signal) =>
    read(async (found) => {
      const source = receiverIn(found);
      const texts: string[] = [];
      for await (const answer of source.rerun(await callIn(source, idArgument(id)), { set, samples }, signal))
        texts.push(`run ${answer.run_id}\n${await answerText(source, answer)}`);
      const lengthMax = Math.floor(RECORDED_MAX / samples);
      const isCut = texts.some((text) => text.length > lengthMax);
      const notes = isCut ? ['Answers that end with … are longer; call show_run to read on.'] : [];
      return { recorded: texts.map((text) => cut(text, lengthMax)).join('\n\n'), notes };
    }),
});
