import { size } from '../sections/size.mjs';
import { growth } from './growth.mjs';
import { openLoop } from './open-loop.mjs';
import { service } from './service.mjs';
import { workloads } from './workloads.mjs';

const sizeAndStart = { name: 'size', group: 'size', title: 'Size and start', section: size };

/** All of the full benchmark, in the order of the page. */
export const CELLS = [...workloads, ...openLoop, ...service, ...growth, sizeAndStart];
