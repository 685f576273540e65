import { isObject } from '../base/options.ts';
import { type Route, readJson } from './route.ts';

/** A login has no more in it than a key. */
const LOGIN_BYTES_MAX = 4 * 1024;

/** How a browser gets in where a key is asked for: with a cookie that stands for it. */
export const loginRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: /^\/login$/,
    admission: 'open',
    handle: async (call) => {
      const body = await readJson(call, LOGIN_BYTES_MAX);
      const key = isObject(body) ? body.key : undefined;
      return { status: 200, body: {}, headers: { 'set-cookie': call.access.login(key, call.request) } };
    },
  },
  {
    method: 'POST',
    path: /^\/logout$/,
    admission: 'open',
    handle: ({ access, request }) => ({ status: 200, body: {}, headers: { 'set-cookie': access.logout(request) } }),
  },
];
