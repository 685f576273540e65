import { describe, expect, it } from 'vitest';
import { agentServerPaths, allPaths, type ThreadPaths, threadPath } from '../../src/clients/thread-paths.ts';

describe('the paths of threads', () => {
  it('are those of the reference chat application, but for those that are given', () => {
    expect(allPaths({ stream: '/s/{thread_id}', list: undefined })).toEqual({
      commands: '/threads/{thread_id}/commands',
      stream: '/s/{thread_id}',
      state: '/threads/{thread_id}/state',
      history: '/threads/{thread_id}/history',
      cancel: '/threads/{thread_id}/runs/{run_id}/cancel',
      delete: '/threads/{thread_id}',
      list: '/threads',
      create: undefined,
    });
    expect(allPaths(agentServerPaths).stream).toBe('/threads/{thread_id}/stream/events');
  });

  it('hold ids that lead nowhere else', () => {
    const path = (id: string): string => threadPath('call', '/a/{thread_id}/b', { thread_id: id });

    expect(['t-1', 'a/b', '...', '../a', 'ü ?#', '{thread_id}', '$&'].map(path)).toEqual([
      '/a/t-1/b',
      '/a/a%2Fb/b',
      '/a/.../b',
      '/a/..%2Fa/b',
      '/a/%C3%BC%20%3F%23/b',
      '/a/%7Bthread_id%7D/b',
      '/a/%24%26/b',
    ]);
    for (const none of ['', '.', '..'])
      expect(() => path(none)).toThrow('call: path.thread_id: Expected text that is not empty, nor . or ..');
    expect(threadPath('call', '/threads')).toBe('/threads');
  });

  it.each([
    {},
    agentServerPaths,
    { commands: '/v1/chat/{thread_id}', cancel: '/{run_id}/of/{thread_id}' },
    { list: '/conversations', delete: '/x-{thread_id}.json' },
    { create: '/threads', state: undefined },
    { cancel: '/{thread_id}/{run_id}/of/{thread_id}' },
  ])('may be %j', (paths) => expect(() => allPaths(paths)).not.toThrow());

  it.each<[unknown, string]>([
    [
      { stream: '/threads' },
      '`stream` to be a path for `paths` that begins with a slash, has {thread_id} and no query',
    ],
    [
      { cancel: '/{thread_id}' },
      '`cancel` to be a path for `paths` that begins with a slash, has {thread_id} and {run_id} and no query',
    ],
    [{ list: 'threads' }, '`list` to be a path for `paths` that begins with a slash, has no id and no query'],
    [
      { streams: '/threads/{thread_id}' },
      '`paths` to have no more than commands, stream, state, history, cancel, delete, list, create, got `streams`',
    ],
    [null, '`paths` to be an object, got null'],
    ['threads', '`paths` to be an object, got text'],
    [[], '`paths` to be an object'],
  ])('that are %j are told what they have to be', (paths, message) => {
    expect(() => allPaths(paths as ThreadPaths)).toThrow(`Expected ${message}`);
  });

  it.each([
    { stream: 'threads/{thread_id}' },
    { stream: '/threads' },
    { stream: '/threads/{id}' },
    { stream: '/threads/{thread_id}?a=1' },
    { stream: '/threads/{thread_id}#a' },
    { stream: '/../{thread_id}' },
    { stream: '/a/./{thread_id}' },
    { stream: '//host/{thread_id}' },
    { stream: '/threads/{thread_id}/{run_id}' },
    { cancel: '/threads/{thread_id}/cancel' },
    { list: '/threads/{thread_id}' },
    { state: '/threads/{thread_id}/\r\n' },
    { state: 3 },
  ])('may not be %j', (paths) => expect(() => allPaths(paths as ThreadPaths)).toThrow('Expected `'));
});
