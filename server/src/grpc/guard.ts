/**
 * What a gRPC call has to pass before its message is received, and the bounds on what is held for
 * it until its stream is closed. grpc-js has a bound for the length of a message, and none for how
 * long it takes to come, nor for all messages that are under way together.
 */
import { constants, type ServerHttp2Stream } from 'node:http2'
import {
  type Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type ServerListener,
  status,
} from '@grpc/grpc-js'
import type { Connections } from '../connections.ts'
import type { ClientBytes, Ended, HeldBytes } from '../held-bytes.ts'
import type { Tokens } from '../tokens.ts'

type Status = Parameters<ServerInterceptingCallInterface['sendStatus']>[0]

/** 1,000 descriptors of 130 bytes. */
export const MAX_MESSAGE_BYTES = 131_072
export const MAX_METADATA_BYTES = 16_384
/** From the first byte of a call to the last of its answer. */
export const CALL_TIMEOUT_MS = 10_000
/** Supervisors have no tokens, and may look for as long as a connection lives. */
const HEALTH_PATH = '/grpc.health.v1.Health/'
const WATCH_TIMEOUT_MS = 3_600_000
/** The bytes of a stream beside its message. */
const STREAM_BYTES = 16_384
/**
 * What a piece of a message costs beside its bytes: it is an object of its own, and a client may
 * send as little as a byte in each.
 */
const PIECE_BYTES = 512
/** A message in larger pieces than these comes to less. */
const MAX_CALL_BYTES = STREAM_BYTES + MAX_METADATA_BYTES + 2 * MAX_MESSAGE_BYTES

const NO_TOKEN = { code: status.UNAUTHENTICATED, details: 'authorization must be Bearer and one of the tokens of the service' }
const LONG_METADATA = { code: status.RESOURCE_EXHAUSTED, details: `the metadata must be at most ${MAX_METADATA_BYTES} bytes` }
const NO_CONNECTION = { code: status.UNAVAILABLE, details: 'all connections of the service are taken' }
const IN_PIECES = { code: status.RESOURCE_EXHAUSTED, details: 'the message comes in too many small pieces' }
const ENDED: Readonly<Record<Ended, Status>> = {
  late: { code: status.DEADLINE_EXCEEDED, details: `the call must be over within ${CALL_TIMEOUT_MS / 1000} seconds` },
  full: {
    code: status.RESOURCE_EXHAUSTED,
    details: 'too many calls are under way whose messages have not come in full, and this is the oldest',
  },
}

export function guard(tokens: Tokens | undefined, held: HeldBytes, connections: Connections): ServerInterceptor {
  return ({ path }, call) => {
    const isHealth = path.startsWith(HEALTH_PATH)
    const maxMs = path === `${HEALTH_PATH}Watch` ? WATCH_TIMEOUT_MS : CALL_TIMEOUT_MS
    const stream = streamOf(call)
    /** Called when the call is over. */
    let leave: (() => void) | undefined
    const refuse = (refusal: Status) => {
      // An answer that the client does not take is not waited for.
      const code = stream?.headersSent ? constants.NGHTTP2_CANCEL : constants.NGHTTP2_NO_ERROR
      call.sendStatus(refusal)
      // A client that goes on sending, or leaves the stream open, would keep it.
      stream?.close(code)
    }
    const onReceiveMetadata: NonNullable<ServerListener['onReceiveMetadata']> = (metadata, next) => {
      const bytes = bytesOf(metadata) + call.getHost().length
      if (bytes > MAX_METADATA_BYTES) return refuse(LONG_METADATA)
      if (!isHealth && tokens?.accept(metadata.get('authorization')[0]?.toString()) === false) return refuse(NO_TOKEN)
      const connection = connections.of(call.getPeer())
      if (connection?.isSpare && !isHealth) {
        refuse(NO_CONNECTION)
        // Its client is to come back on another, which may not be a spare one.
        stream?.session?.close()
        return
      }
      const holding = held.enter(maxMs, (why) => refuse(ENDED[why]))
      // Asking for health is no use of a connection: it needs no token, and Watch goes on for long.
      const used = isHealth ? undefined : connection
      if (used !== undefined) connections.begin(used)
      leave = () => {
        leave = undefined
        holding.leave()
        if (used !== undefined) connections.end(used)
      }
      if (stream === undefined) holding.grow(MAX_CALL_BYTES)
      else {
        stream.once('close', leave)
        watch(stream, holding, () => refuse(IN_PIECES))
      }
      holding.grow(STREAM_BYTES + bytes)
      next(metadata)
    }
    // What the stream says where it can be seen.
    const onCancel = () => {
      if (stream === undefined) leave?.()
    }
    const sendStatus = (sent: Status, next: (sent: Status) => void) => {
      next(sent)
      onCancel()
    }
    return new ServerInterceptingCall(call, { start: (next) => next({ onReceiveMetadata, onCancel }), sendStatus })
  }
}

function watch(stream: ServerHttp2Stream, holding: ClientBytes, refuseInPieces: () => void): void {
  stream.on('data', ({ length }: Buffer) => {
    if (holding.bytes > MAX_CALL_BYTES) refuseInPieces()
    else holding.grow(length + PIECE_BYTES)
  })
}

/**
 * The HTTP/2 stream of a call. grpc-js (1.14) has no documented way to it: an interceptor is told
 * of whole messages, and may send a status, which does not close a stream that the client keeps
 * open. Where a later version hides it otherwise, this is undefined. Then a call counts as the
 * largest that there may be, from its metadata to its status, and is ended by a status alone.
 */
function streamOf(call: ServerInterceptingCallInterface): ServerHttp2Stream | undefined {
  const { stream } = call as unknown as { readonly stream?: Partial<ServerHttp2Stream> }
  const isStream = typeof stream?.close === 'function' && typeof stream.on === 'function'
  return isStream ? (stream as ServerHttp2Stream) : undefined
}

function bytesOf(metadata: Metadata): number {
  let bytes = 0
  for (const [name, values] of Object.entries(metadata.toJSON())) for (const value of values) bytes += name.length + value.length
  return bytes
}
