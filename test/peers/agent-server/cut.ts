import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Starts a proxy that once closes the connection right after a text in the response, and sends `end` before. */
export async function cutBehind(url: string, text: string, end = ''): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  let isCut = false;
  const proxy = createServer((socket) => {
    const upstream = connect(Number(new URL(url).port), '127.0.0.1');
    for (const one of [socket, upstream]) sockets.add(one.on('error', () => one.destroy()));
    socket.on('data', (chunk) => {
      const request = chunk.toString('latin1');
      requests.push(request.split(' HTTP/')[0] ?? '');
      // A platform refuses the host of the proxy.
      upstream.write(request.replace(/^host: .*$/im, `host: ${new URL(url).host}`), 'latin1');
    });
    let seen = '';
    upstream.on('data', (chunk) => {
      const before = seen.length;
      seen += chunk.toString('latin1');
      const at = isCut ? -1 : seen.indexOf(text);
      if (at < 0) return socket.write(chunk);
      isCut = true;
      socket.write(chunk.subarray(0, at + text.length - before));
      return socket.end(end, () => upstream.destroy());
    });
    upstream.on('close', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, requests };
}
