import { text } from './values.ts';
import type { Vocabulary } from './vocabulary.ts';

/** What of a span says that it is a message, a remote call or a function that a platform has started. */
const SYSTEMS: readonly string[] = [
  'messaging.system.name',
  'messaging.system',
  'rpc.system.name',
  'rpc.system',
  'faas.trigger',
];

/**
 * OpenTelemetry's conventions for messages, remote procedure calls and functions as a service; older names stand below those
 * that took their place:
 * https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/
 * https://opentelemetry.io/docs/specs/semconv/rpc/rpc-spans/
 * https://opentelemetry.io/docs/specs/semconv/faas/faas-spans/
 *
 * Of these spans no payload is known, only where it went.
 */
export const messaging: Vocabulary = {
  name: 'messaging',
  roots: ['messaging', 'rpc', 'faas'],
  isSpoken: (attributes) => SYSTEMS.some((system) => attributes[system] !== undefined),
  kindOf: () => ({ runType: 'chain' }),
  inputs: [
    ['messaging.destination.name', 'destination', text],
    ['messaging.destination', 'destination', text, 'repeats'],
    ['messaging.operation.name', 'operation', text],
    ['messaging.operation.type', 'operation', text],
    ['messaging.operation', 'operation', text, 'repeats'],
    ['rpc.service', 'service', text],
    ['rpc.method_original', 'method', text],
    ['rpc.method', 'method', text, 'repeats'],
    ['faas.trigger', 'trigger', text],
    ['faas.invoked_name', 'function', text],
  ],
};
