import { describe, expect, it } from 'vitest';
import { Barrier } from '../../src/export/barrier.ts';
import { dropAttachments, heldBytes, newDelivery, releasePosted, takeItem } from '../../src/export/delivery.ts';
import { ended, makeDelivery, makeItem, makeRun } from '../support/encoded-run.ts';

const RECORD_BYTES = 1_024;

describe('takeItem', () => {
  it.each([
    ['started', 'post', false, 'posting'],
    ['whole', 'post', true, 'finishing'],
    ['patch', 'patch', true, 'finishing'],
  ] as const)('takes what waits as %s for a %s (with the end: %s), which is then %s', (stage, op, isEnded, next) => {
    const delivery = makeDelivery({ stage });

    expect(takeItem(delivery)).toMatchObject({ op, isEnded, delivery });
    expect(delivery.stage).toBe(next);
  });

  it('leaves outputs and events out while the run is open', () => {
    const item = makeItem(makeRun({ inputs: '{"q":1}', outputs: '{"a":1}', events: '[{}]' }), 'started');

    expect(item).toMatchObject({ inputs: '{"q":1}', outputs: undefined, events: undefined });
  });
});

describe('releasePosted', () => {
  it('lets go of the inputs that were sent, and keeps those that have been set since', () => {
    const [same, changed] = [makeRun({ inputs: '{"q":1}' }), makeRun({ inputs: '{"q":1}' })];
    const items = [makeItem(same, 'started'), makeItem(changed, 'started')];
    changed.inputs = '{"q":2}';
    for (const item of items) releasePosted(item);

    expect([same.inputs, changed.inputs]).toEqual([undefined, '{"q":2}']);
  });
});

describe('attachments', () => {
  const attachment = (name: string) => ({ name, bytes: Buffer.from(name), mimeType: 'text/plain' });

  it('that came after the start wait for the end, where they are counted', () => {
    const [first, replaced, late] = [attachment('first'), attachment('replaced'), attachment('late')];
    const run = makeRun({ attachments: [first, replaced] });
    const delivery = newDelivery(run, 0, 0, new Barrier().enter());
    run.attachments = [first, late];

    expect(takeItem(delivery).attachments).toEqual([first]);
    delivery.stage = 'whole';
    expect(takeItem(delivery).attachments).toEqual([first, late]);
  });

  it('are not held on to once the post has been accepted', () => {
    const item = makeItem(makeRun({ attachments: [attachment('first')] }), 'started');
    releasePosted(item);

    expect(item.delivery.attachedAtStart).toEqual([]);
  });

  it('that came while the post was under way stay for the patch, whatever became of the others', () => {
    const [first, late] = [attachment('first'), attachment('late')];
    const run = makeRun({ attachments: [first] });
    const item = makeItem(run, 'started');
    run.attachments?.push(late);
    dropAttachments(run, item.attachments);
    releasePosted(item);

    expect(run.attachments).toEqual([late]);
    expect(run.metadata?.get('dropped_attachments')).toBe('1');
  });
});

describe('heldBytes', () => {
  it('counts payloads in bytes of UTF-8, the error, metadata, attachments, and the frame', () => {
    const attachments = [
      { name: 'a', bytes: new Uint8Array(50), mimeType: 'image/png' },
      { name: 'é', bytes: new Blob(['€']), mimeType: 'text/plain' },
    ];
    const run = ended(
      makeRun({ inputs: '"€"', outputs: '"ab"', events: '[]', metadata: new Map([['k', '12345']]), attachments }),
      { error: 'Error' },
    );

    expect(heldBytes(makeDelivery({ run: makeRun() }))).toBe(RECORD_BYTES);
    expect(heldBytes(makeDelivery({ run }))).toBe(
      RECORD_BYTES + 5 + 4 + 2 + 5 + 5 + (256 + 2 + 9 + 50) + (256 + 4 + 10 + 3),
    );
  });
});
