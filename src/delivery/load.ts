import * as delivery from './process-exporters.ts';

/** Returns the code for delivery. In Node's ES modules, `load.node.ts` replaces this file and loads the code late. */
export function loadDelivery(): typeof delivery | undefined {
  return delivery;
}
