import { Server as HttpServer } from 'node:http';
import type { Server } from 'node:net';
import { onTestFinished } from 'vitest';
import { listen } from './listen.ts';

/** Listens on a free port of 127.0.0.1 until the test has finished, and returns the URL. */
export async function listenInTest(server: Server): Promise<string> {
  onTestFinished(() => {
    server.close();
    if (server instanceof HttpServer) server.closeAllConnections();
  });
  return listen(server);
}
