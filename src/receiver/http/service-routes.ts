import { delay } from '../../platform/timers.ts';
import { DEFAULT_SCOPE } from '../store/store.ts';
import { HttpError } from './http-error.ts';
import type { Call, Route, RouteResponse } from './route.ts';

export const serviceRoutes: readonly Route[] = [
  { method: 'GET', path: '/healthz', admission: 'open', handle: () => ({ status: 200, body: { status: 'ok' } }) },
  { method: 'GET', path: '/readyz', admission: 'open', handle: readiness },
  { method: 'GET', path: '/metrics', admission: 'metrics', handle: metrics },
];

/** Time in which a store that is ready answers, in milliseconds. */
const READY_MS = 2_000;

/** Resolves with undefined if the store fails or does not answer in time. */
async function inTime<Answer>(answer: Promise<Answer> | undefined, ms: number): Promise<Answer | undefined> {
  return (await Promise.race([answer?.catch(() => undefined), delay(ms, undefined)])) ?? undefined;
}

/** Responds with status 200 if the store answers a query and can write, both in time. */
async function readiness({ store, writeProblem, fault, lag, readyMs = READY_MS }: Call): Promise<RouteResponse> {
  const found = fault();
  if (found !== undefined) throw new HttpError(503, found);
  const [answer, problem] = await Promise.all([inTime(store.tokenSecrets(), readyMs), inTime(writeProblem(), readyMs)]);
  if (answer === undefined) throw new HttpError(503, 'The store does not answer');
  if (problem !== '') throw new HttpError(503, problem ?? `The store has not written within ${readyMs / 1_000} s`);
  return { status: 200, body: { status: 'ready', detail: lag() } };
}

/** Responds without the metrics of the store if the store does not answer. */
async function metrics({ metrics: counts, streams, status, store, tenants }: Call): Promise<RouteResponse> {
  const projects = counts.projects(store, tenants?.() ?? [DEFAULT_SCOPE.tenant]);
  const content = counts.text(
    streams.size,
    ...(await Promise.all([inTime(status?.(), READY_MS), inTime(projects, READY_MS)])),
  );
  return { status: 200, headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }, content };
}
