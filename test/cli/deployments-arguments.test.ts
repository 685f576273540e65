import { describe, expect, it } from 'vitest';
import { parseArguments } from '../../src/cli/arguments.ts';

const parse = (line: string): object => parseArguments(line.split(' ').filter((word) => word !== ''));

describe('the arguments of deployments', () => {
  it.each<[string, object]>([
    ['list', { action: 'list', filter: { name: undefined, status: undefined, limit: 20 }, isJson: false }],
    ['list --name chat --status READY --limit 1', { filter: { name: 'chat', status: 'READY', limit: 1 } }],
    ['list --limit 1000 --json', { filter: { limit: 1000 }, isJson: true }],
    ['integrations --json', { action: 'integrations', isJson: true }],
    ['listeners --limit 5', { action: 'listeners', filter: { limit: 5 } }],
    ['get d1', { action: 'get', id: 'd1' }],
    ['create --file -', { action: 'create', file: '-', isWaiting: false }],
    [
      'create --name a --source git_host --repo https://host/a --ref main --config graph.json --wait --timeout 90s',
      {
        fields: {
          name: 'a',
          source: 'git_host',
          repo: 'https://host/a',
          ref: 'main',
          config: 'graph.json',
          secrets: [],
        },
        isWaiting: true,
        timeoutMs: 90_000,
      },
    ],
    [
      'update d1 --image registry/a:2 --secret KEY --secret OTHER=a=b',
      {
        action: 'update',
        id: 'd1',
        fields: {
          image: 'registry/a:2',
          secrets: [
            ['KEY', undefined],
            ['OTHER', 'a=b'],
          ],
        },
      },
    ],
    ['redeploy d1 --revision r1 --wait', { action: 'redeploy', revisionId: 'r1', isWaiting: true }],
    ['wait d1 --timeout 1h', { action: 'wait', isWaiting: true, timeoutMs: 3_600_000 }],
    ['upload d1 ./app', { action: 'upload', id: 'd1', path: './app', isDeploying: false }],
    [
      'upload d1 app.tar.gz --deploy --config graph.json --wait',
      { path: 'app.tar.gz', isDeploying: true, isWaiting: true },
    ],
    ['update d1 --ref=--wait', { fields: { ref: '--wait' }, isWaiting: false }],
    ['delete d1 --yes --delete-project', { action: 'delete', isConfirmed: true, deletesProject: true }],
    [
      'get d1 --url https://host/api --spelling git_host=theirs',
      { service: { url: new URL('https://host/api'), spelling: { git_host: 'theirs' } } },
    ],
  ])('%s', (line, expected) => {
    expect(parse(`deployments ${line}`)).toMatchObject({ kind: 'deployments', ...expected });
  });

  it.each<[string, string]>([
    [
      '',
      'expected list, get, create, update, redeploy, wait, upload, delete, integrations, listeners after deployments',
    ],
    ['destroy', 'unknown command "deployments destroy"'],
    ['get', 'expected the id of a deployment after deployments get'],
    ['get d1 d2', 'unexpected "d2"'],
    ['list d1', 'unexpected "d1"'],
    ['upload d1', 'expected a folder or an archive after deployments upload'],
    ['upload d1 a b', 'unexpected "b"'],
    ['get d1 --wait', '--wait does not go with deployments get'],
    ['update d1 --name other', '--name does not go with deployments update'],
    ['wait d1 --wait', '--wait does not go with deployments wait'],
    ['create --timeout 5m', '--timeout goes with --wait'],
    ['upload d1 a --wait', 'upload: --wait and --config go with --deploy'],
    ['upload d1 a --config graph.json', 'upload: --wait and --config go with --deploy'],
    ['wait d1 --timeout 0s', 'expected --timeout to be like 90s, 15m or 1h'],
    ['wait d1 --timeout 15', 'expected --timeout to be like 90s, 15m or 1h'],
    ['list --limit 0', 'expected --limit to be a number from 1 to 1000'],
    ['list --limit 1001', 'expected --limit to be a number from 1 to 1000'],
    ['get d1 --url host', 'expected --url to be an http or https address'],
    ['get d1 --spelling git_host', 'expected --spelling to be like git_host=…'],
    ['get d1 --spelling =a', 'expected --spelling to be like git_host=…'],
    ['create --secret =value', 'expected --secret to be a name, or <name>=<value>'],
    ['create --nme a', 'unknown option "--nme"'],
    ['update d1 --ref --wait', 'expected a value for --ref'],
  ])('%s is a mistake that is named', (line, message) => {
    expect(parse(`deployments ${line}`)).toEqual({ kind: 'mistake', topic: 'deployments', message });
  });
});
