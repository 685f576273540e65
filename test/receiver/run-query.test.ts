import { describe, expect, test } from 'vitest';
import type { RunQuery } from '#src/receiver.ts';
import { CHILD, makeChild, makeRun, part, ROOT, sendParts, start } from './wire.ts';

const OTHER = '0193b3a0-3333-7000-8000-000000000003';

async function filled() {
  const receiver = await start();
  const other = { id: OTHER, trace_id: OTHER, dotted_order: `20261120T072239000000Z${OTHER}`, session_name: 'shop' };
  await sendParts(
    receiver,
    part(`post.${ROOT}`, makeRun()),
    part(`post.${CHILD}`, makeChild()),
    part(`post.${OTHER}`, makeRun(other)),
  );
  return receiver;
}

describe('a query', () => {
  test.each<[RunQuery | undefined, string[]]>([
    [undefined, [OTHER, ROOT, CHILD]],
    [{ project: 'default', filter: 'name:answer' }, [ROOT]],
    [{ limit: 2 }, [OTHER, ROOT]],
    [{ limit: undefined, filter: undefined } as unknown as RunQuery, [OTHER, ROOT, CHILD]],
    [{ traceId: ROOT.replaceAll('-', '').toUpperCase() }, [ROOT, CHILD]],
  ])('%j gives what matches, in order', async (query, ids) => {
    const receiver = await filled();
    expect((await receiver.runs(query)).map(({ id }) => id)).toEqual(ids);
  });

  test.each<[unknown, string]>([
    [{ limit: 0 }, 'Expected `limit` to be a whole number from 1, got the number 0'],
    [{ limit: 1.5 }, 'Expected `limit`'],
    [{ traceId: 'abc' }, 'Expected `traceId` to be a UUID, got "abc"'],
    [{ filter: 'status:x' }, 'Expected `filter` to be a valid filter, got "status:x": status: expects one of error,'],
    [{ filter: 1 }, 'Expected `filter` to be a string, got the number 1'],
    [{ name: 'a' }, 'got `name`'],
    [{ trace_id: ROOT }, 'got `trace_id`'],
    [null, 'Expected the query to be an object, got null'],
    [5, 'Expected the query to be an object, got the number 5'],
    ['answer', 'Expected the query to be an object, got a string'],
  ])('%j is refused by name', async (query, message) => {
    const receiver = await start();
    await expect(receiver.runs(query as RunQuery)).rejects.toMatchObject({
      code: 'RUNSPAN_INVALID_OPTION',
      message: expect.stringContaining(message),
    });
  });

  test('a trace is asked for by a UUID', async () => {
    const receiver = await start();
    await expect(receiver.trace('abc')).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
  });
});
