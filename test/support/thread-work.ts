import zlib from 'node:zlib';

/** Counts compressions and reads of Blobs in other threads, so that virtual time can wait for them. */
export const threadWork = { pending: 0 };

const { gzip } = zlib;

zlib.gzip = ((buffer: Buffer, options: zlib.ZlibOptions, done: (error: Error | null, result: Buffer) => void) => {
  threadWork.pending++;
  gzip(buffer, options, (error, result) => {
    threadWork.pending--;
    done(error, result);
  });
}) as typeof gzip;

const { arrayBuffer } = Blob.prototype;

Blob.prototype.arrayBuffer = function (this: Blob): Promise<ArrayBuffer> {
  threadWork.pending++;
  return arrayBuffer.call(this).finally(() => {
    threadWork.pending--;
  });
};
