// What bundlers load for the `#delivery` of the entries.
import { registerDelivery } from './load.node.ts';
import * as delivery from './process-exporters.ts';

registerDelivery(delivery);
