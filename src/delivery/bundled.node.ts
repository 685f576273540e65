// Bundlers resolve `#delivery` to this file, so that a bundle contains the code for delivery.
import { registerDelivery } from './load.node.ts';
import * as delivery from './process-exporters.ts';

registerDelivery(delivery);
