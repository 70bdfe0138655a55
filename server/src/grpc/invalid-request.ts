/** What a caller of the gRPC side got wrong. */
export class InvalidRequest extends Error {}
