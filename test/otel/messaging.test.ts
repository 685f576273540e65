import { expect, test } from 'vitest';
import type { Attributes } from '../../src/otel/conventions/values.ts';
import { mapped } from './mapped.ts';

/** Names from https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/, `rpc/rpc-spans/` and `faas/faas-spans/`. */
test.each<[string, Attributes, object, Attributes]>([
  [
    'a message',
    { 'messaging.system': 'kafka', 'messaging.destination.name': 'orders', 'messaging.operation.name': 'send' },
    { destination: 'orders', operation: 'send' },
    { 'messaging.system': 'kafka' },
  ],
  [
    'a message without the name of its operation',
    { 'messaging.system.name': 'aws_sqs', 'messaging.operation.type': 'receive' },
    { operation: 'receive' },
    { 'messaging.system.name': 'aws_sqs' },
  ],
  [
    'a message by the old names',
    { 'messaging.system': 'rabbitmq', 'messaging.destination': 'orders', 'messaging.operation': 'process' },
    { destination: 'orders', operation: 'process' },
    { 'messaging.system': 'rabbitmq' },
  ],
  [
    'a remote call',
    { 'rpc.system.name': 'grpc', 'rpc.method': 'shop.Orders/Add', 'rpc.response.status_code': 'OK' },
    { method: 'shop.Orders/Add' },
    { 'rpc.system.name': 'grpc', 'rpc.response.status_code': 'OK' },
  ],
  [
    'a remote call of an unknown method',
    { 'rpc.system.name': 'grpc', 'rpc.method': '_OTHER', 'rpc.method_original': 'shop.Orders/Brew' },
    { method: 'shop.Orders/Brew' },
    { 'rpc.system.name': 'grpc' },
  ],
  [
    'a remote call by the old names',
    { 'rpc.system': 'aws-api', 'rpc.service': 'S3', 'rpc.method': 'PutObject' },
    { service: 'S3', method: 'PutObject' },
    { 'rpc.system': 'aws-api' },
  ],
  [
    'a function invocation',
    { 'faas.trigger': 'timer', 'faas.invocation_id': '1' },
    { trigger: 'timer' },
    { 'faas.invocation_id': '1' },
  ],
])('%s is a chain with its destination', (_, attributes, fields, left) => {
  const { runType, inputs, metadata } = mapped(attributes);
  expect(runType).toBe('chain');
  expect(inputs).toEqual(fields);
  expect(metadata).toEqual(left);
});
