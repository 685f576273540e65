import { describe, expect, test } from 'vitest';
import { isWanted, type Subscription } from '../../server/http/subscription.ts';

describe('a filter takes', () => {
  const all = [
    { channel: 'messages', namespace: [] },
    { channel: 'messages', namespace: ['tools:1'] },
    { channel: 'messages', namespace: ['tools:1', 'model:2'] },
    { channel: 'lifecycle', namespace: ['model:3'] },
    { channel: 'custom', namespace: [] },
    { channel: 'custom:progress', namespace: [] },
  ];
  const cases: [string, Subscription, number[]][] = [
    ['all without a word', {}, [0, 1, 2, 3, 4, 5]],
    ['a channel', { channels: ['lifecycle'] }, [3]],
    ['every custom event by their common name', { channels: ['custom'] }, [4, 5]],
    ['one custom event by its own', { channels: ['custom:progress'] }, [5]],
    ['no channel that nobody knows', { channels: ['nothing', 'messages'] }, [0, 1, 2]],
    ['a namespace and all below it', { namespaces: [['tools:1']] }, [1, 2]],
    ['a namespace by its name without a task', { namespaces: [['tools']] }, [1, 2]],
    ['no namespace of another task', { namespaces: [['tools:2']] }, []],
    ['the root alone', { namespaces: [[]], depth: 0 }, [0, 4, 5]],
    ['the root and one below', { namespaces: [[]], depth: 1 }, [0, 1, 3, 4, 5]],
    ['one of several namespaces', { namespaces: [['model'], ['tools:1']], depth: 0 }, [1, 3]],
    ['all where the list of namespaces is empty', { namespaces: [] }, [0, 1, 2, 3, 4, 5]],
  ];
  test.each(cases)('%s', (_, subscription, expected) => {
    expect(all.flatMap((event, index) => (isWanted(event, subscription) ? [index] : []))).toEqual(expected);
  });
});
