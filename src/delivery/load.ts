import * as delivery from './process-exporters.ts';

/** Returns the code for delivery. In Node's build, `load.node.ts` replaces this file and loads the code late. */
export function loadDelivery(): typeof delivery {
  return delivery;
}
