// Traces with more messages than a store in ClickHouse reads at once.
import { onTestFinished, test } from 'vitest';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import { ClickHouse, integer, sql, string } from '#src/receiver/store/clickhouse/connection.ts';
import { id, patch, post } from '../receiver/conformance/support.ts';
import { startDatabase } from './clickhouse/database.ts';

test('A trace is listed whole up to 200,000 messages, and above as incomplete by its first run', async ({ expect }) => {
  const { url, openStore, stop } = await startDatabase();
  onTestFinished(stop);
  // The inserts of this test take longer than requests may.
  const db = await ClickHouse.connect(url, 'retention');
  onTestFinished(() => db.close());
  const store = await openStore();
  const tenant = { tenant: 'large' };
  const addRuns = (root: number, count: number): Promise<void> =>
    db.command(
      sql(
        `INSERT INTO messages (tenant, day, group_id, id, kind, received_us, fields, searched, facts, payloads)
          SELECT 'large', toDate('2026-11-20'), toUUID(?) AS root,
            toUUID(concat('01920000-0000-7000-8000-', leftPad(toString(number), 12, '0'))), 1, 1000000 + number,
            concat('{"trace_id":"', toString(root), '","run_type":"tool","start_time":"2026-11-20T10:00:00.000000Z",',
              '"parent_run_id":"', toString(root), '"}'), '{"name":"step"}', '{}', ['{}', '', ''] FROM numbers(?, ?)`,
        string(id(root)),
        integer(root * 1_000_000),
        integer(count),
      ),
    );
  await store.apply(tenant, [post(1), post(3)]);
  await store.settled();
  await addRuns(1, 44_999);
  await addRuns(3, 199_999);
  await store.apply(tenant, [patch(1, { outputs: {} }), patch(3, { outputs: {}, error: 'Error: own' })]);
  await store.settled();
  const traces = (await store.traces(tenant, parsedQuery({}))).items;
  expect(traces.find((trace) => trace.id === id(1))).toMatchObject({ status: 'pending', trace: { runs: 45_000 } });
  expect(traces.find((trace) => trace.id === id(3))).toMatchObject({
    status: 'incomplete',
    error: expect.stringContaining('more than 200,000 messages'),
  });
  expect((await store.statistics(tenant, parsedQuery({}))).total.runs).toBe(45_001);
}, 120_000);
