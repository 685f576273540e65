import { fieldsOf, stringOf } from './protocol.ts';

/** What a reader is told of an answer that is no success, and can do about it. It may be that of a proxy, which knows nothing of the interface. */
export function refusalOf(status: number, body: string): string {
  const said = saidIn(body);
  switch (status) {
    case 413:
      return 'This is too long for the server. Make it shorter, or send it in parts.';
    case 422:
      return `The server does not understand this page, which may be older than the server. Reload the page.${
        said === undefined ? '' : ` (${said})`
      }`;
    case 502:
    case 503:
    case 504:
      return said ?? `The server is away for the moment (${status}). Try again in a while.`;
    default:
      return said ?? `The server answered ${status}.`;
  }
}

/** `{ detail: [{ loc, msg }] }` of a request with mistakes, `{ message }` or `{ detail }` else. */
function saidIn(body: string): string | undefined {
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch {
    return undefined;
  }
  const { detail, message } = fieldsOf(answer);
  if (!Array.isArray(detail)) return stringOf(message) ?? stringOf(detail);
  const mistakes = detail.map((mistake) => {
    const { loc, msg } = fieldsOf(mistake);
    return `${Array.isArray(loc) ? loc.join('.') : 'request'}: ${stringOf(msg) ?? 'is wrong'}`;
  });
  return mistakes.join('; ');
}
