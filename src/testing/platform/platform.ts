import { randomUUID } from 'node:crypto';
import { isSpelling } from '../../clients/control-plane/spelling.ts';
import { type Checks, checkedOptions, FUNCTION, isLoopback, isObject, wholeFrom } from '../../config/checker.ts';
import { receiverRoutes } from '../../receiver/all-routes.ts';
import { checkedQuery } from '../../receiver/api/run-query.ts';
import { Access } from '../../receiver/http/access/access.ts';
import { TokenSigner } from '../../receiver/http/access/token-signer.ts';
import { Faults } from '../../receiver/http/server/faults.ts';
import { listen } from '../../receiver/http/server/server.ts';
import { storedRuns } from '../../receiver/receiver.ts';
import { MemoryStore } from '../../receiver/store/memory-store.ts';
import { agentServerRoutes } from './agent-server.ts';
import { repeatLastMessage } from './assistant.ts';
import { PlatformControlPlane } from './control-plane.ts';
import { PlatformKeys } from './platform-keys.ts';
import type { Platform, PlatformOptions } from './platform-options.ts';
import { Requests } from './requests.ts';

/** Loaded by the first `createPlatform`. */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const given = checkedOptions('the options', options, CHECKS);
  const { host = '127.0.0.1', port = 0, hosting = 'cloud', statusMs = 200, spelling = {} } = given;
  const { keys = { 'platform-key': [randomUUID()] }, assistants = { agent: repeatLastMessage } } = given;
  const [[apiKey, [tenantId]]] = Object.entries(keys) as [[string, [string]]];
  const store = new MemoryStore();
  const faults = new Faults();
  const requests = new Requests();
  const uploads = new Map<string, Uint8Array>();
  const closing = new AbortController();
  const controlPlane = new PlatformControlPlane({ hosting, statusMs, spelling, requests, uploads, url: () => url });
  const access = new Access({ host, keys: new PlatformKeys(keys) }, new TokenSigner(store));
  const routes = receiverRoutes({ store, strict: true, faults, access }, [
    ...controlPlane.routes,
    ...agentServerRoutes(assistants, controlPlane, requests, closing.signal),
  ]);
  const server = await listen(requests.recorded(routes), host.replace(/^\[(.*)\]$/, '$1'), port);
  const { url } = server;
  const close = (): Promise<void> => {
    closing.abort();
    return server.close();
  };
  return {
    url,
    agentUrl: `${url}/agents/local`,
    apiKey,
    tenantId,
    uploads,
    get requests() {
      return requests.seen;
    },
    next: (request, answer) => requests.next(request, answer),
    setStatuses: (statuses) => controlPlane.setStatuses(statuses),
    push: (deploymentId) => controlPlane.push(deploymentId),
    setFaults: (faulty) => faults.set(faulty),
    runs: async (query = {}) => storedRuns(store, checkedQuery(query), { tenant: tenantId }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function isKeys(value: unknown): boolean {
  const isTexts = (list: unknown): boolean =>
    Array.isArray(list) && list.length > 0 && list.every((text) => typeof text === 'string' && text !== '');
  return isObject(value) && Object.keys(value).length > 0 && Object.values(value).every(isTexts);
}

const CHECKS: Checks<PlatformOptions> = {
  host: ['a loopback address (127.0.0.1, ::1 or localhost)', (value) => typeof value === 'string' && isLoopback(value)],
  port: wholeFrom(0, 65_535),
  keys: ['an object that maps each key to a list of workspace ids', isKeys, 'secret'],
  hosting: ["'cloud' or 'self-hosted'", (value) => value === 'cloud' || value === 'self-hosted'],
  statusMs: wholeFrom(0, 86_400_000),
  spelling: ['names such as { git_host }', isSpelling],
  assistants: [
    'an object that maps names to functions',
    (value) => isObject(value) && Object.keys(value).length > 0 && Object.values(value).every(FUNCTION[1]),
  ],
};
