import { expect, test } from 'vitest';
import { resourceWait } from '../../src/otel/flushing.ts';
import type { ResourceLike } from '../../src/otel.ts';
import { pendingResource } from './pending-resource.ts';

test('there is nothing to wait for when the attributes are known, or nobody says that they are not', () => {
  expect(resourceWait({ attributes: {} })).toBeUndefined();
  expect(resourceWait({ attributes: {}, asyncAttributesPending: false })).toBeUndefined();
  expect(resourceWait(undefined as unknown as ResourceLike)).toBeUndefined();
});

test('a wait ends when the attributes are there, and is one for all spans of a resource', async () => {
  const { resource, service } = pendingResource();
  const wait = resourceWait(resource, 1_000_000);
  expect(wait).toBeInstanceOf(Promise);
  expect(resourceWait(resource)).toBe(wait);
  service.open('shop');
  await wait;
  expect(resource.attributes['service.name']).toBe('shop');
  expect(resourceWait(resource)).toBeUndefined();
});

test('a wait ends at its limit, and is not begun again', async () => {
  const { resource } = pendingResource();
  await resourceWait(resource, 1);
  expect(resource.asyncAttributesPending).toBe(true);
  expect(resourceWait(resource)).toBeUndefined();
});

test('a wait ends when the attributes cannot be found out', async () => {
  const failing = { attributes: {}, asyncAttributesPending: true };
  const rejects = { ...failing, waitForAsyncAttributes: () => Promise.reject(new Error('no cloud')) };
  const throws = {
    ...failing,
    waitForAsyncAttributes: () => {
      throw new Error('no cloud');
    },
  };
  await resourceWait(rejects, 1_000_000);
  await resourceWait(throws, 1_000_000);
  await resourceWait(failing, 1);
});
