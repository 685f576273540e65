import type { Transform, TransformCallback } from 'node:stream';
import zlib from 'node:zlib';

/** Counts compressions and reads of Blobs in other threads, so that virtual time can wait for them. */
export const threadWork = { pending: 0, isStuck: false };

/** Node has zstd since version 22.15. */
export const hasZstd: boolean = 'createZstdCompress' in zlib;

/** The prototype of all compressors and decompressors. */
let compressors: Pick<Transform, '_transform'> = zlib.Gzip.prototype;
while (!Object.hasOwn(compressors, '_transform')) compressors = Object.getPrototypeOf(compressors);

const { _transform } = compressors;

compressors._transform = function (this: Transform, chunk, encoding, done: TransformCallback) {
  // As if all threads were waiting for a disk.
  if (threadWork.isStuck) return;
  threadWork.pending++;
  _transform.call(this, chunk, encoding, (...results: Parameters<TransformCallback>) => {
    threadWork.pending--;
    done(...results);
  });
};

const { arrayBuffer } = Blob.prototype;

Blob.prototype.arrayBuffer = function (this: Blob): Promise<ArrayBuffer> {
  threadWork.pending++;
  return arrayBuffer.call(this).finally(() => {
    threadWork.pending--;
  });
};
