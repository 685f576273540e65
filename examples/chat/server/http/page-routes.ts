import { serveStatic } from '@hono/node-server/serve-static';
import { Hono } from 'hono';
import { secureHeaders } from 'hono/secure-headers';

/** The files of the page, from the folder that it was built into. It talks to this server and to the one that takes feedback. */
export function pageRoutes(folder: string, traceOrigin: string | undefined): Hono {
  const app = new Hono();
  app.use(
    secureHeaders({
      // Whether there is TLS, and for which names, is up to whoever stands in front.
      strictTransportSecurity: false,
      contentSecurityPolicy: {
        defaultSrc: ["'self'"],
        connectSrc: ["'self'", ...(traceOrigin === undefined ? [] : [traceOrigin])],
        imgSrc: ["'self'", 'data:'],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
      },
    }),
  );
  app.use('/assets/*', async (context, next) => {
    await next();
    // Their names change with what they hold.
    context.header('cache-control', 'public, max-age=31536000, immutable');
  });
  app.use(serveStatic({ root: folder }));
  app.get('*', (context, next) => {
    const isForReader = /\btext\/html\b/.test(context.req.header('accept') ?? '');
    return isForReader && !context.req.path.startsWith('/api/') ? context.html(NOTHING_HERE, 404) : next();
  });
  return app;
}

/** For whoever has mistyped the address; programs are told in JSON. */
const NOTHING_HERE =
  '<!doctype html><html lang="en"><meta charset="utf-8"><title>Not found</title><p>There is nothing here. <a href="/">Go to the chat</a></p></html>\n';
