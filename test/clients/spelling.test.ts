import { describe, expect, it } from 'vitest';
import { isSpelling, SpellingTable } from '../../src/clients/spelling.ts';

const table = new SpellingTable({ git_host: 'hub', graph_config_path: 'agent_config_path' });

const ours = {
  name: 'git_host',
  source: 'git_host',
  revision_source: 'internal_source',
  source_revision_config: { graph_config_path: 'git_host', repo_ref: 'graph_config_path' },
  secrets: [{ name: 'graph_config_path', value: 'git_host' }],
};

const theirs = {
  ...ours,
  source: 'hub',
  source_revision_config: { agent_config_path: 'git_host', repo_ref: 'graph_config_path' },
};

describe('the words of a service', () => {
  it('stand on the wire for sources and fields, and for nothing else', () => {
    expect(table.toWire(ours)).toEqual(theirs);
    expect(table.fromWire(theirs)).toEqual(ours);
    expect(table.word('git_host')).toBe('hub');
    expect(table.word('external_container')).toBe('external_container');
  });

  it('are those of the interface where no others are given', () => {
    expect(new SpellingTable({}).toWire(ours)).toBe(ours);
  });

  it('leave what is no resource as it is', () => {
    for (const value of [undefined, null, 'hub', ['hub'], { source: null, source_revision_config: null }]) {
      expect(table.fromWire(value)).toEqual(value);
    }
  });

  it.each([
    { git_host: 'hub' },
    {},
    { git_host: undefined },
    { git_host: 'external_container', external_container: 'git_host' },
  ])('can be %j', (spelling) => {
    expect(isSpelling(spelling)).toBe(true);
  });

  it.each([
    null,
    'hub',
    [],
    { git: 'hub' },
    { git_host: '' },
    { git_host: 'a/b' },
    { git_host: 7 },
    { git_host: 'hub', external_container: 'hub' },
    { git_host: 'external_container' },
  ])('cannot be %j', (spelling) => {
    expect(isSpelling(spelling)).toBe(false);
  });
});
