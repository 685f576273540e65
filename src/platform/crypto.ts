import { nodeModule } from './node.ts';

export const randomBytes = (bytes: number): Buffer => nodeModule('node:crypto').randomBytes(bytes);

export const sha1 = (bytes: Uint8Array): Buffer => nodeModule('node:crypto').createHash('sha1').update(bytes).digest();
