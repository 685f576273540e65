import { growth } from './growth.mjs';
import { openLoop } from './open-loop.mjs';
import { service } from './service.mjs';
import { workloads } from './workloads.mjs';

/** All of the full benchmark, in the order of the page. */
export const CELLS = [...workloads, ...openLoop, ...service, ...growth];
