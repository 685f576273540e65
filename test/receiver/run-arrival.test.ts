import '../support/virtual-timers.ts';

import { beforeEach, describe, expect, it } from 'vitest';
import { onceRunIsHere } from '../../src/receiver/ingest/run-arrival.ts';
import { MemoryStore } from '../../src/receiver/store/memory-store.ts';
import { virtualClock } from '../support/virtual-timers.ts';

const ID = '0193b3a0-1111-7000-8000-000000000001';

function arrive(store: MemoryStore): Promise<void> {
  const fields = {
    name: 'run',
    run_type: 'chain',
    start_time: '2026-11-20T07:22:40.000000Z',
    trace_id: ID,
    dotted_order: `20261120T072240000000Z${ID}`,
  };
  return store.apply([{ kind: 'post', id: ID, fields, attachments: [] }]);
}

describe('what needs a run', () => {
  beforeEach(() => virtualClock.reset());

  it('is done at once where the run is here', async () => {
    let tries = 0;
    expect(await onceRunIsHere(new MemoryStore(), async () => ++tries === 1)).toBe(true);
  });

  it('is done when the run comes, also while it is tried', async () => {
    const store = new MemoryStore();
    let tries = 0;
    const done = onceRunIsHere(store, async () => {
      tries += 1;
      if (tries === 1) await arrive(store);
      return tries === 2;
    });
    expect(await done).toBe(true);
  });

  it('is given up after a second, and not before', async () => {
    let isOver = false;
    const done = onceRunIsHere(new MemoryStore(), async () => false).then((isDone) => {
      isOver = true;
      return isDone;
    });
    await virtualClock.advance(999);
    expect(isOver).toBe(false);
    await virtualClock.advance(1);
    expect(await done).toBe(false);
  });

  it('is not tried again by changes that come later', async () => {
    const store = new MemoryStore();
    let tries = 0;
    await onceRunIsHere(store, async () => ++tries === 1);
    await arrive(store);
    expect(tries).toBe(1);
  });
});
