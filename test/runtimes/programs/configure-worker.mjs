import { env } from 'cloudflare:workers';
import { configure, traceable } from 'runspan';

configure({ endpoint: env.RUNSPAN_ENDPOINT });

// In an application, this call would be a mistake: Workers forbid random numbers and timers at module scope.
if (env.EARLY) globalThis.early = traceable(() => 'at module scope', { name: 'early' })();
