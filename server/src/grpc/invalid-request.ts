/** Mistakes in a gRPC request. */
export class InvalidRequest extends Error {}
