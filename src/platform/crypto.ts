import { nodeModule } from './node.ts';

export const fillRandom = (block: Uint32Array): void => void nodeModule('node:crypto').randomFillSync(block);

export const sha1 = (bytes: Uint8Array): Buffer => nodeModule('node:crypto').createHash('sha1').update(bytes).digest();
