import { expect, it } from 'vitest';
import { AgentServer } from '../../src/clients/agent-server.ts';

const server = new AgentServer({ url: 'http://127.0.0.1:9' });
const RUN = { assistant_id: 'agent' };
const CRON = { ...RUN, schedule: '0 9 * * 1' };
const ID = '0193b3a0-1111-7000-8000-000000000001';

/** Whether a call is refused before it is sent, and where. */
async function refusal(call: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    const { errors } = error as { errors?: { loc: unknown[] }[] };
    if (errors !== undefined) return errors.map(({ loc }) => loc.join('.')).join();
  }
  return 'sent';
}

const search = (body: object) => () => server.threads.search(body, { maxRetries: 0 });
const run = (body: object) => () => server.runs.create(ID, { ...RUN, ...body } as never, { maxRetries: 0 });
const cron = (body: object) => () => server.crons.create({ ...CRON, ...body } as never, { maxRetries: 0 });
const put = (body: object) => () =>
  server.store.put({ namespace: ['a'], key: 'k', value: {}, ...body } as never, { maxRetries: 0 });

it.each([
  [search({ limit: 0 }), 'body.limit'],
  [search({ limit: 1 }), 'sent'],
  [search({ limit: 1_000 }), 'sent'],
  [search({ limit: 1_001 }), 'body.limit'],
  [search({ offset: -1 }), 'body.offset'],
  [search({ offset: 0 }), 'sent'],
  [search({ ids: [ID] }), 'sent'],
  [search({ ids: [ID, 'x'] }), 'body.ids'],
  [search({ sort_by: 'status', sort_order: 'up' }), 'body.sort_order'],
  [search({ sortBy: 'status' }), 'body.sortBy'],
  [search([]), 'body'],
  [run({ input: null }), 'sent'],
  [run({ stream_mode: ['values', 'messages-tuple'] }), 'sent'],
  [run({ stream_mode: 'all' }), 'body.stream_mode'],
  [run({ interrupt_before: '*' }), 'sent'],
  [run({ interrupt_before: ['plan'] }), 'sent'],
  [run({ interrupt_before: 'plan' }), 'body.interrupt_before'],
  [run({ feedback_keys: ['x'.repeat(180)] }), 'sent'],
  [run({ feedback_keys: ['x'.repeat(181)] }), 'body.feedback_keys'],
  [run({ feedback_keys: 'liked' }), 'body.feedback_keys'],
  [run({ after_seconds: 0 }), 'sent'],
  [run({ after_seconds: -1 }), 'body.after_seconds'],
  [run({ multitask_strategy: 'queue' }), 'body.multitask_strategy'],
  [run({ assistant_id: undefined }), 'body.assistant_id'],
  [cron({ schedule: '* * * *' }), 'body.schedule'],
  [cron({ schedule: '* * * * *' }), 'sent'],
  [cron({ schedule: '0 * * * * *' }), 'sent'],
  [cron({ schedule: '0 0 * * * * *' }), 'body.schedule'],
  [cron({ schedule: '@daily' }), 'sent'],
  [cron({ timezone: 'Europe/Berlin' }), 'sent'],
  [cron({ timezone: null }), 'sent'],
  [cron({ timezone: 'Europe/Nowhere' }), 'body.timezone'],
  [cron({ end_time: '2027-01-01T00:00:00Z' }), 'sent'],
  [cron({ end_time: 'tomorrow' }), 'body.end_time'],
  [put({ index: false }), 'sent'],
  [put({ index: true }), 'body.index'],
  [put({ ttl: 0 }), 'body.ttl'],
  [put({ ttl: 0.5 }), 'sent'],
  [put({ value: 'text' }), 'body.value'],
  [put({ namespace: ['a.b'] }), 'body.namespace'],
])('%s is refused at %s, or sent', async (call, expected) => {
  expect(await refusal(call)).toBe(expected);
});
