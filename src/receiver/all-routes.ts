import { attachmentRoutes } from './api/attachment-routes.ts';
import { feedbackRoutes, tokenRoutes } from './api/feedback-routes.ts';
import { langSmithRoutes } from './api/langsmith-routes.ts';
import { queryRoutes } from './api/query-routes.ts';
import { pageRoutes } from './http/page-routes.ts';
import type { Route } from './http/route.ts';
import { createRoutes, type Routes, type RoutesOptions } from './http/routes.ts';
import { serviceRoutes } from './http/service-routes.ts';
import { fieldRoutes, interfaceRoutes } from './ingest/ingest-routes.ts';
import { otlpRoutes } from './ingest/otlp-routes.ts';

/** Routes that strict mode hides. */
const OTHERS: readonly Route[] = [...fieldRoutes, ...langSmithRoutes, ...feedbackRoutes, ...otlpRoutes];

export const ROUTES: readonly Route[] = [
  ...interfaceRoutes,
  ...tokenRoutes,
  ...OTHERS,
  ...queryRoutes,
  ...attachmentRoutes,
  ...serviceRoutes,
  ...pageRoutes,
];

/** Returns a function that responds to the requests to a receiver. Routes in `added` replace routes with the same path. */
export function receiverRoutes(options: RoutesOptions, added: readonly Route[] = []): Routes {
  return createRoutes([...added, ...ROUTES], OTHERS, options);
}
