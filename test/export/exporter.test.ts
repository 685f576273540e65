import { beforeEach, describe, expect, it } from 'vitest';
import type { Exporter } from '../../src/export/exporter.ts';
import type { EncodedRun } from '../../src/run/encoded-run.ts';
import { revokedProxy } from '../base/hostile.ts';
import { addsUp } from '../support/adds-up.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { makeExporter } from '../support/exporter.ts';
import { told } from '../support/told.ts';
import { turns } from '../support/virtual-time.ts';

const text = (length: number) => JSON.stringify('x'.repeat(length - 2));
const RECORD_BYTES = 1_024;

function begin(exporter: Exporter, fields: Partial<EncodedRun> = {}, parent?: EncodedRun): EncodedRun {
  const run = makeRun(fields, parent);
  exporter.start(run);
  return run;
}

function whole(exporter: Exporter, fields: Partial<EncodedRun> = {}): EncodedRun {
  const run = begin(exporter, fields);
  exporter.end(ended(run));
  return run;
}

beforeEach(() => void told());

describe('Exporter: a run that has ended and is not handed over yet', () => {
  const late = { name: 'late', bytes: Buffer.from('late'), mimeType: 'text/plain' };

  it('is waited for by a flush when nothing of it has been sent, and goes as one post', async () => {
    const { exporter, sender } = makeExporter();
    const run = ended(begin(exporter));
    exporter.ending(run);
    const flushed = exporter.flush();
    const [post] = await sender.finish(0);
    expect(post).toMatchObject({ op: 'post', isEnded: false });
    expect(exporter.stats()).toMatchObject({ open: 1, sent: 0 });
    run.attachments = [late];
    exporter.end(run);
    const [patch] = await sender.finish(1);

    expect(patch).toMatchObject({ op: 'patch', isEnded: true, attachments: [late] });
    expect(await flushed).toEqual({ ok: true, pending: 0 });
    expect(exporter.stats()).toMatchObject({ created: 1, sent: 1, open: 0 });
  });

  it('is waited for when its post has been delivered, and counted as pending', async () => {
    const { exporter, sender } = makeExporter();
    const run = begin(exporter);
    void exporter.flush();
    await sender.finish(0);
    exporter.ending(ended(run));

    expect(await exporter.flush({ timeoutMs: 0 })).toEqual({ ok: false, pending: 1 });
    const flushed = exporter.flush();
    exporter.end(run);
    await sender.finish(1);
    expect(await flushed).toEqual({ ok: true, pending: 0 });
    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
    expect(addsUp(exporter.stats())).toBe(true);
  });

  it.each(['before', 'after'])('is patched when its post was accepted %s it was handed over', async (order) => {
    const { exporter, sender } = makeExporter();
    const run = begin(exporter);
    void exporter.flush();
    const post = await sender.sending(0);
    exporter.ending(ended(run));
    if (order === 'after') exporter.end(run);
    post.settle({ kind: 'accepted' });
    post.end();
    await turns();
    if (order === 'before') {
      expect(await exporter.flush({ timeoutMs: 0 })).toEqual({ ok: false, pending: 1 });
      exporter.end(run);
    }
    const flushed = exporter.flush();
    await sender.finish(1);

    expect(await flushed).toEqual({ ok: true, pending: 0 });
    expect(exporter.stats()).toMatchObject({ created: 1, sent: 1 });
  });

  it('is given up when the exporter has closed meanwhile, and counted once', async () => {
    const { exporter, sender } = makeExporter();
    const run = begin(exporter);
    void exporter.flush();
    await sender.finish(0);
    exporter.ending(ended(run));
    await exporter.close({ timeoutMs: 0 });
    exporter.end(run);

    expect(exporter.stats()).toMatchObject({ created: 1, open: 0, dropped: 1, droppedByReason: { closed: 1 } });
    expect(addsUp(exporter.stats())).toBe(true);
    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
  });

  it('keeps its end when the exporter waits no longer for it', async () => {
    const { exporter, sender } = makeExporter({ openRuns: 1 });
    const run = ended(begin(exporter));
    exporter.ending(run);
    begin(exporter);
    void exporter.flush();

    expect((await sender.finish(0)).find(({ delivery }) => delivery.run === run)).toMatchObject({ isEnded: true });
    expect(run.error).toBeUndefined();
  });
});

describe('Exporter: a run that it has not waited for', () => {
  it.each(['whole', 'patch'])(
    'is sent with all it has when its end comes once more before that: as %s',
    async (way) => {
      const { exporter, sender } = makeExporter({ openRuns: 1 });
      const run = begin(exporter, { inputs: '{"q":1}' });
      if (way === 'patch') {
        void exporter.flush();
        await sender.finish(0);
      }
      run.outputs = '{"a":1}';
      exporter.ending(ended(run));
      begin(exporter);
      exporter.end(run);
      void exporter.flush();
      const items = await sender.finish(way === 'patch' ? 1 : 0);

      expect(items.find(({ delivery }) => delivery.run === run)).toMatchObject({
        isEnded: true,
        inputs: way === 'patch' ? undefined : '{"q":1}',
        outputs: '{"a":1}',
      });
      expect(exporter.stats()).toMatchObject({ created: 2, sent: 1, open: 1 });
      expect(addsUp(exporter.stats())).toBe(true);
    },
  );
});

describe('Exporter: what travels', () => {
  it('sends a run that ended before its start was sent as one post', async () => {
    const { exporter, sender } = makeExporter();
    const run = whole(exporter);
    const flushed = exporter.flush();
    const items = await sender.finish(0);

    expect(items.map(({ op, isEnded, delivery }) => [op, isEnded, delivery.run])).toEqual([['post', true, run]]);
    expect(await flushed).toEqual({ ok: true, pending: 0 });
    expect(exporter.stats()).toMatchObject({ created: 1, sent: 1 });
  });

  it('sends post and patch apart when the end comes after the post', async () => {
    const { exporter, sender } = makeExporter();
    const run = begin(exporter, { inputs: '{"q":1}' });
    const first = exporter.flush();
    const [post] = await sender.finish(0);
    await first;
    exporter.end(ended(run, { outputs: '{"a":1}' }));
    const second = exporter.flush();
    const [patch] = await sender.finish(1);
    await second;

    expect(post).toMatchObject({ op: 'post', isEnded: false, inputs: '{"q":1}' });
    expect(patch).toMatchObject({ op: 'patch', isEnded: true, inputs: undefined, outputs: '{"a":1}' });
  });

  it('sends inputs again with the patch when they were changed after the post', async () => {
    const { exporter, sender } = makeExporter();
    const run = begin(exporter, { inputs: '{"q":1}' });
    void exporter.flush();
    await sender.finish(0);
    exporter.end(ended(run, { inputs: '{"q":2}' }));
    void exporter.flush();

    expect((await sender.finish(1))[0]).toMatchObject({ op: 'patch', inputs: '{"q":2}' });
  });

  it('sends with the patch only the attachments that the post did not carry', async () => {
    const attachment = (name: string) => ({ name, bytes: Buffer.from(name), mimeType: 'text/plain' });
    const { exporter, sender } = makeExporter();
    const run = begin(exporter, { attachments: [attachment('early')] });
    void exporter.flush();
    const [post] = await sender.finish(0);
    run.attachments?.push(attachment('late'));
    exporter.end(ended(run));
    void exporter.flush();
    const [patch] = await sender.finish(1);

    expect([post, patch].map((item) => item?.attachments.map(({ name }) => name))).toEqual([['early'], ['late']]);
  });

  it('keeps a batch within its bytes, whatever is attached to runs after their start', async () => {
    const { exporter, sender } = makeExporter({ batchBytes: 10_000 });
    const runs = [begin(exporter), begin(exporter)];
    for (const run of runs) run.attachments = [{ name: 'a', bytes: Buffer.alloc(6_000), mimeType: 'image/png' }];
    void exporter.flush();
    expect((await sender.finish(0)).map(({ attachments }) => attachments)).toEqual([[], []]);
    for (const run of runs) exporter.end(ended(run));
    void exporter.flush();
    await sender.finish(1);
    await sender.finish(2);

    expect(sender.sendings.map(({ items }) => items.length)).toEqual([2, 1, 1]);
  });

  it('holds a patch while the post of its run is under way, and lets others pass', async () => {
    const { exporter, sender } = makeExporter();
    const run = begin(exporter);
    void exporter.flush();
    const post = await sender.sending(0);
    exporter.end(ended(run));
    const other = whole(exporter);
    void exporter.flush();
    await sender.finish(1);

    expect(sender.sendings.map(({ items }) => items.map(({ delivery }) => delivery.run))).toEqual([[run], [other]]);
    expect(exporter.stats()).toMatchObject({ queued: 1, sent: 1, open: 0 });
    post.settle({ kind: 'accepted' });
    post.end();
    expect((await sender.finish(2))[0]).toMatchObject({ op: 'patch', delivery: { run } });
    expect(exporter.stats()).toMatchObject({ queued: 0, sent: 2 });
  });

  it('gives up the patch with the post', async () => {
    const { exporter, sender } = makeExporter();
    const run = begin(exporter);
    void exporter.flush();
    await sender.sending(0);
    exporter.end(ended(run));
    await sender.finish(0, { kind: 'dropped', reason: 'rejected', detail: '422' });

    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
    expect(sender.sendings).toHaveLength(1);
    expect(exporter.stats()).toMatchObject({ created: 1, dropped: 1, droppedByReason: { rejected: 1 } });
  });

  it('counts a run whose post was given up while it was open once, and ignores its end', async () => {
    const { exporter, sender } = makeExporter();
    const run = begin(exporter);
    void exporter.flush();
    await sender.finish(0, { kind: 'dropped', reason: 'rejected', detail: '422' });
    exporter.end(ended(run));

    expect(exporter.stats()).toMatchObject({ created: 1, open: 0, dropped: 1 });
    expect(addsUp(exporter.stats())).toBe(true);
  });
});

describe('Exporter: when it sends', () => {
  it.each([
    [2, 0],
    [3, 1],
    [4, 1],
  ])('has, of batches of 3 runs, after %i ended ones sent %i', async (count, batches) => {
    const { exporter, sender } = makeExporter({ batchRuns: 3 });
    for (let n = 0; n < count; n++) whole(exporter);
    await turns();

    expect(sender.sendings).toHaveLength(batches);
  });

  it('does not fill a batch with runs whose end may still come', async () => {
    const { exporter, sender } = makeExporter({ batchRuns: 2 });
    for (let n = 0; n < 5; n++) begin(exporter);
    await turns();

    expect(sender.sendings).toHaveLength(0);
  });

  it.each([
    [-1, 0],
    [0, 1],
    [1, 1],
  ])('with %i bytes over a batch has sent %i', async (over, batches) => {
    const { exporter, sender } = makeExporter({ batchBytes: 10_000 });
    whole(exporter, { inputs: text(10_000 - RECORD_BYTES + over) });
    await turns();

    expect(sender.sendings).toHaveLength(batches);
  });

  it('sends what waits when the first of it has lingered', async () => {
    const { exporter, sender } = makeExporter({ lingerMs: 1 });
    const runs = [begin(exporter), whole(exporter)];
    const { items } = await sender.sending(0);

    expect(items.map(({ delivery }) => delivery.run)).toEqual(runs);
  });

  it('has no more requests under way than it may', async () => {
    const { exporter, sender } = makeExporter({ batchRuns: 1, requestsInFlight: 2 });
    for (let n = 0; n < 5; n++) whole(exporter);
    await turns(8);
    expect(sender.sendings).toHaveLength(2);
    await sender.finish(0);

    expect(sender.sendings).toHaveLength(3);
  });

  it('lays batches outside of the call path', () => {
    const { exporter, sender } = makeExporter({ batchRuns: 1 });
    whole(exporter);

    expect(sender.sendings).toHaveLength(0);
  });
});

describe('Exporter: bounds', () => {
  it.each([
    [2, 0],
    [3, 0],
    [4, 1],
  ])('of %i new traces at a limit of 3 runs refuses %i [fault 41]', (count, refused) => {
    const { exporter } = makeExporter({ queueRuns: 3 });
    for (let n = 0; n < count; n++) whole(exporter);

    expect(exporter.stats()).toMatchObject({ created: count, dropped: refused, queued: count - refused });
  });

  it('refuses a trace whole', () => {
    const { exporter } = makeExporter({ queueRuns: 1 });
    whole(exporter);
    const refusedRoot = makeRun();
    expect(exporter.start(refusedRoot)).toBe(false);
    expect(exporter.start(makeRun({ refused: true }, refusedRoot))).toBe(false);

    expect(exporter.stats().droppedByReason.queue_full).toBe(2);
  });

  it.each([
    [4, true],
    [5, false],
  ])('with %i runs waiting at a limit of 4 takes one more of an accepted trace: %s', (waiting, isTaken) => {
    const { exporter } = makeExporter({ queueRuns: 4 });
    const root = begin(exporter);
    for (let n = 1; n < waiting; n++) begin(exporter, {}, root);

    expect(exporter.start(makeRun({}, root))).toBe(isTaken);
  });

  it.each([
    [-1, true],
    [0, false],
    [1, false],
  ])('with %i bytes over its limit takes a new trace: %s [fault 41]', (over, isTaken) => {
    const { exporter } = makeExporter({ queueBytes: 50_000 });
    begin(exporter, { inputs: text(50_000 - RECORD_BYTES + over) });

    expect(exporter.start(makeRun())).toBe(isTaken);
  });

  it.each([
    [-1, '{"a":1}'],
    [0, '{"runspan":"left out: the queue was full"}'],
  ])('with %i bytes over 1.25 times its limit keeps of an end the outputs %s', async (over, outputs) => {
    const { exporter, sender } = makeExporter({ queueBytes: 40_000 });
    const run = begin(exporter, { inputs: text(50_000 - RECORD_BYTES + over) });
    exporter.end(ended(run, { outputs: '{"a":1}' }));
    void exporter.flush();

    expect((await sender.finish(0))[0]?.outputs).toBe(outputs);
  });

  it('takes new traces again when what waited has been delivered', async () => {
    const { exporter, sender } = makeExporter({ queueRuns: 1 });
    whole(exporter);
    void exporter.flush();
    await sender.finish(0);

    expect(exporter.start(makeRun())).toBe(true);
  });

  it('tells of each run that it drops, and is not hurt by a callback that throws', () => {
    const told: unknown[] = [];
    const { exporter } = makeExporter({ queueRuns: 1 }, (reason, run) => {
      told.push([reason, run]);
      throw new Error('mine');
    });
    whole(exporter);
    const run = whole(exporter);

    expect(told).toEqual([['queue_full', { id: run.id, traceId: run.traceId, name: run.name }]]);
  });

  it('sends the oldest open run as incomplete when there are too many [fault 93]', async () => {
    const { exporter, sender } = makeExporter({ openRuns: 2 });
    const [oldest] = [begin(exporter), begin(exporter)];
    begin(exporter);
    expect(exporter.stats()).toMatchObject({ open: 3, queued: 0 });
    void exporter.flush();
    const { items } = await sender.sending(0);

    expect(items.find(({ delivery }) => delivery.run === oldest)).toMatchObject({
      op: 'post',
      isEnded: true,
      endOverride: { error: expect.stringMatching(/^Incomplete: /), endTime: expect.stringMatching(/^\d{4}-.*Z$/) },
    });
    expect(oldest).toMatchObject({ error: undefined, endTime: undefined });
  });

  it.each(['its post', 'its record as incomplete'])(
    'sends the end of an incomplete run after %s, which is in flight when the run ends',
    async (which) => {
      const { exporter, sender } = makeExporter({ openRuns: 1 });
      const run = begin(exporter);
      void exporter.flush();
      if (which !== 'its post') await sender.finish(0);
      const first = which === 'its post' ? 0 : 1;
      await sender.sending(0);
      begin(exporter);
      void exporter.flush();
      const { items } = await sender.sending(first);
      expect(items.map(({ delivery }) => delivery.run)).toContain(run);
      exporter.end(ended(run, { outputs: '{"a":1}' }));
      expect(addsUp(exporter.stats())).toBe(true);
      const closed = exporter.close();
      for (let sending = first; exporter.stats().sent === 0; sending++) await sender.finish(sending);
      await closed;

      const last = sender.sendings.flatMap((sending) => sending.items).findLast((item) => item.delivery.run === run);
      expect(last).toMatchObject({ op: 'patch', isEnded: true, outputs: '{"a":1}', endOverride: { error: '' } });
      expect(exporter.stats()).toMatchObject({ created: 2, open: 1, sent: 1, dropped: 0 });
      expect(addsUp(exporter.stats())).toBe(true);
    },
  );

  it('keeps what an incomplete run holds when it ends after all, until it is delivered', async () => {
    const { exporter, sender } = makeExporter({ openRuns: 1 });
    const run = makeRun({ inputs: '{"question":1}' });
    exporter.start(run);
    begin(exporter);
    exporter.end(ended(run));
    void exporter.flush();
    const items = await sender.finish(0);

    expect(items.find(({ delivery }) => delivery.run === run)).toMatchObject({ inputs: '{"question":1}' });
    expect(run).toMatchObject({ inputs: undefined, error: undefined });
  });
});

describe('Exporter: flush and close', () => {
  it('flushes at once when there is nothing to wait for', async () => {
    expect(await makeExporter().exporter.flush()).toEqual({ ok: true, pending: 0 });
  });

  it('does not wait for open runs, but for their posts', async () => {
    const { exporter, sender } = makeExporter();
    begin(exporter);
    const flushed = exporter.flush();
    await sender.finish(0);

    expect(await flushed).toEqual({ ok: true, pending: 0 });
    expect(exporter.stats()).toMatchObject({ open: 1 });
  });

  it('does not wait for what is recorded after the call [fault 99]', async () => {
    const { exporter, sender } = makeExporter({ requestsInFlight: 1 });
    whole(exporter);
    const flushed = exporter.flush();
    await sender.sending(0);
    whole(exporter);
    await sender.finish(0);

    expect(await flushed).toEqual({ ok: true, pending: 0 });
    expect(exporter.stats()).toMatchObject({ sent: 1, queued: 1, dropped: 0 });
  });

  it('says how many runs are left when its time is over, and loses none of them [fault 100]', async () => {
    const { exporter, sender } = makeExporter();
    whole(exporter);
    whole(exporter);
    expect(await exporter.flush({ timeoutMs: 1 })).toEqual({ ok: false, pending: 2 });
    await sender.finish(0);

    expect(exporter.stats()).toMatchObject({ sent: 2, dropped: 0 });
  });

  it.each<[string, unknown, string]>([
    ['a number by itself', 5_000, 'the number 5000'],
    ['null', null, 'null'],
    ['text', { timeoutMs: '5s' }, '`timeoutMs` "5s"'],
    ['a symbol', { timeoutMs: Symbol('s') }, '`timeoutMs` Symbol(s)'],
    ['a large number', { timeoutMs: 10n }, '`timeoutMs` 10'],
    ['an object without a value', { timeoutMs: Object.create(null) }, '`timeoutMs` an object'],
    ['less than nothing', { timeoutMs: -1 }, '`timeoutMs` the number -1'],
  ])('takes %s for no limit, and says so once', async (_, limit, shown) => {
    const lines = told();
    const { exporter, sender } = makeExporter();
    expect(await exporter.flush(limit as never)).toEqual({ ok: true, pending: 0 });
    whole(exporter);
    const flushed = exporter.flush(limit as never);
    await sender.finish(0);
    expect(await flushed).toEqual({ ok: true, pending: 0 });
    expect(await exporter.close(limit as never)).toEqual({ ok: true, pending: 0 });
    expect(lines).toEqual([
      `warn: flush and shutdown: expected { timeoutMs } with a number from 0, got ${shown}; the limit is 30 seconds.`,
    ]);
  });

  it('leaves out an option of the limit that there is not, and says so once', async () => {
    const lines = told();
    const { exporter } = makeExporter();
    await exporter.flush({ timeoutMS: 5 } as never);
    await exporter.close({ timeoutMS: 5 } as never);

    expect(lines).toEqual(['warn: flush and shutdown: expected { timeoutMs }, got `timeoutMS`; left out.']);
  });

  it('works by itself, as do close and stats', async () => {
    const { exporter, sender } = makeExporter();
    const { flush, close, stats } = exporter;
    whole(exporter);
    const flushed = flush();
    await sender.finish(0);
    expect([await flushed, await close()]).toEqual([
      { ok: true, pending: 0 },
      { ok: true, pending: 0 },
    ]);
    expect(stats()).toMatchObject({ created: 1, sent: 1 });
  });

  it('does not reject over a limit that cannot be read', async () => {
    const { exporter } = makeExporter();
    expect(await exporter.close(revokedProxy() as never)).toEqual({ ok: true, pending: 0 });
  });

  it.each([Number.NaN, -1])('takes %d for no limit at all', async (timeoutMs) => {
    const { exporter, sender } = makeExporter();
    whole(exporter);
    const flushed = exporter.flush({ timeoutMs });
    await sender.finish(0);

    expect(await flushed).toEqual({ ok: true, pending: 0 });
  });

  it('returns early when the service has asked for a longer pause', async () => {
    const { exporter, pause } = makeExporter();
    whole(exporter);
    pause(1_000_000);

    expect(await exporter.flush({ timeoutMs: 500_000 })).toEqual({ ok: false, pending: 1 });
  });

  it('returns early when the service asks for such a pause meanwhile', async () => {
    const { exporter, sender, pause } = makeExporter();
    whole(exporter);
    const flushed = exporter.flush({ timeoutMs: 500_000 });
    await sender.sending(0);
    pause(1_000);
    pause(1_000_000);

    expect(await flushed).toEqual({ ok: false, pending: 1 });
  });

  it('serves a hundred flushes at once [fault 99]', async () => {
    const { exporter, sender } = makeExporter();
    whole(exporter);
    const flushes = Promise.all(Array.from({ length: 100 }, () => exporter.flush()));
    await sender.finish(0);

    expect((await flushes).every(({ ok }) => ok)).toBe(true);
    expect(sender.sendings).toHaveLength(1);
  });

  it('answers flushes while it closes and when it has closed [fault 99]', async () => {
    const { exporter, sender } = makeExporter();
    whole(exporter);
    const closing = exporter.close();
    const during = exporter.flush();
    await sender.finish(0);

    expect([await closing, await during, await exporter.flush()]).toEqual(
      Array.from({ length: 3 }, () => ({ ok: true, pending: 0 })),
    );
    expect(sender.sendings).toHaveLength(1);
  });

  it('delivers what it has before it closes, once however often it is asked [fault 99]', async () => {
    const { exporter, sender } = makeExporter();
    whole(exporter);
    const [first, second] = [exporter.close(), exporter.close()];
    await sender.finish(0);

    expect(first).toBe(second);
    expect(await first).toEqual({ ok: true, pending: 0 });
    expect(exporter.stats()).toMatchObject({ sent: 1, dropped: 0 });
  });

  it('gives up what it cannot deliver in time when it closes: waiting, under way, and held', async () => {
    const { exporter, sender } = makeExporter({ requestsInFlight: 1 });
    const held = begin(exporter);
    void exporter.flush();
    await sender.sending(0);
    exporter.end(ended(held));
    whole(exporter);
    begin(exporter);

    expect(await exporter.close({ timeoutMs: 1 })).toEqual({ ok: false, pending: 3 });
    expect(exporter.stats()).toMatchObject({ created: 3, dropped: 3, droppedByReason: { closed: 3 } });
    expect(addsUp(exporter.stats())).toBe(true);
  });

  it('takes the ends of its runs while it closes, and no new runs [fault 99]', async () => {
    const { exporter, sender } = makeExporter({ requestsInFlight: 1 });
    const [open] = [begin(exporter), whole(exporter)];
    const closing = exporter.close();
    await sender.sending(0);
    exporter.end(ended(open as EncodedRun));
    expect(exporter.start(makeRun())).toBe(false);
    await sender.finish(0);
    await closing;

    expect(exporter.stats()).toMatchObject({ created: 3, sent: 1, droppedByReason: { closed: 2 } });
    expect(addsUp(exporter.stats())).toBe(true);
  });

  it('counts a run once that ends while its post is broken off', async () => {
    const { exporter, sender } = makeExporter();
    const run = begin(exporter);
    void exporter.flush({ timeoutMs: 1 });
    const { signal } = await sender.sending(0);
    signal.addEventListener('abort', () => exporter.end(ended(run)));
    await exporter.close({ timeoutMs: 0 });

    expect(exporter.stats()).toMatchObject({ created: 1, open: 0, dropped: 1 });
    expect(addsUp(exporter.stats())).toBe(true);
  });

  it('lets go of what it has delivered, though the application holds on to the run', async () => {
    const { exporter, sender } = makeExporter();
    const run = whole(exporter, { inputs: '{"q":1}', metadata: new Map([['k', '1']]) });
    void exporter.flush();
    await sender.finish(0);

    expect([run.inputs, run.outputs, run.metadata, run.error]).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('counts runs and ends that come after it has closed as dropped [fault 99]', async () => {
    const { exporter, sender } = makeExporter();
    const open = begin(exporter);
    void exporter.flush();
    await sender.finish(0);
    await exporter.close();
    exporter.end(ended(open));
    begin(exporter);

    expect(exporter.stats()).toMatchObject({ created: 2, open: 0, dropped: 2, droppedByReason: { closed: 2 } });
  });

  it('closes by itself, once retired, when its runs are finished and delivered', async () => {
    const { exporter, sender } = makeExporter({ lingerMs: 1 });
    const open = begin(exporter);
    exporter.retire();
    await sender.finish(0);
    const child = begin(exporter, {}, open);
    exporter.end(ended(child));
    exporter.end(ended(open));
    await sender.finish(1);
    await turns();

    expect(exporter.stats()).toMatchObject({ created: 2, sent: 2 });
    expect(exporter.start(makeRun())).toBe(false);
  });
});

describe('Exporter: what it holds', () => {
  it('is nothing before a run, and again when all is delivered', async () => {
    const { exporter, sender } = makeExporter();
    expect(exporter.stats().backlog).toEqual({ bytes: 0, oldestMs: 0 });
    whole(exporter);
    const flushed = exporter.flush();
    await sender.finish(0);
    await flushed;
    expect(exporter.stats().backlog).toEqual({ bytes: 0, oldestMs: 0 });
  });

  it('is counted in bytes while it waits and while it is under way', async () => {
    const { exporter, sender } = makeExporter();
    whole(exporter, { inputs: text(5_000) });
    const { bytes } = exporter.stats().backlog;
    expect(bytes).toBeGreaterThan(5_000);
    expect(bytes).toBeLessThan(5_000 + 2 * RECORD_BYTES);
    whole(exporter, { inputs: text(5_000) });
    expect(exporter.stats().backlog.bytes).toBe(2 * bytes);
    const flushed = exporter.flush();
    expect(exporter.stats().backlog.bytes).toBe(2 * bytes);
    await sender.finish(0);
    await flushed;
  });

  it('is as old as the first in line, of runs that have ended and of those that have only started', () => {
    const { exporter, time } = makeExporter();
    time.nowMs = 10;
    begin(exporter);
    time.nowMs = 30;
    whole(exporter);
    time.nowMs = 100;
    expect(exporter.stats().backlog.oldestMs).toBe(90);
  });

  it('stays as old while it is tried again, pauses included', async () => {
    const { exporter, sender, pause, time } = makeExporter();
    whole(exporter);
    const flushed = exporter.flush();
    const sending = await sender.sending(0);
    time.nowMs = 1_000;
    whole(exporter);
    pause(300_000);
    time.nowMs = 200_000;
    expect(exporter.stats().backlog.oldestMs).toBe(200_000);
    sending.settle({ kind: 'accepted' });
    sending.end();
    await turns();
    expect(exporter.stats().backlog.oldestMs).toBe(199_000);
    await exporter.close({ timeoutMs: 0 });
    await flushed;
  });

  it('does not grow old by a long run of which nothing waits, whose end counts from when it came', async () => {
    const { exporter, sender, time } = makeExporter();
    const run = begin(exporter);
    void exporter.flush();
    await sender.finish(0);
    time.nowMs = 60_000;
    expect(exporter.stats().backlog).toEqual({ bytes: 0, oldestMs: 0 });
    exporter.end(ended(run));
    time.nowMs = 60_007;
    expect(exporter.stats().backlog.oldestMs).toBe(7);
  });

  it('is nothing once it has closed and given up the rest', async () => {
    const { exporter } = makeExporter();
    whole(exporter);
    await exporter.close({ timeoutMs: 0 });
    expect(exporter.stats()).toMatchObject({ dropped: 1, backlog: { bytes: 0, oldestMs: 0 } });
  });
});
