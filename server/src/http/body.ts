/** The JSON in a request, read within bounds. */
import type { IncomingMessage } from 'node:http'
import type { ClientBytes, HeldBytes } from '../held-bytes.ts'
import { jsonIn } from '../json.ts'
import { BadRequest } from './problem.ts'

export const MAX_BODY_BYTES = 1_048_576
/** A client that takes longer to send its request is cut off. */
export const REQUEST_TIMEOUT_MS = 30_000
const EMPTY = Buffer.alloc(0)

/** A browser sends other types to any site without asking; JSON it does not. */
export async function jsonBody(request: IncomingMessage, held: HeldBytes): Promise<unknown> {
  const type = request.headers['content-type'] ?? ''
  if (!/^application\/json *(;|$)/i.test(type)) {
    throw new BadRequest(415, 'CONTENT_TYPE', `content-type ${JSON.stringify(type)} must be application/json`)
  }
  const declared = Number(request.headers['content-length'] ?? 0)
  if (declared > MAX_BODY_BYTES) throw tooLarge()
  const { body, bytes } = await bodyOf(request, held)
  try {
    return jsonIn(body, bytes)
  } catch (error) {
    throw new BadRequest(400, 'JSON', `the body must be JSON: ${(error as Error).message}`)
  }
}

// Listeners and not `for await`, which costs a promise for each piece and a quarter of all
// decisions.
function bodyOf(request: IncomingMessage, held: HeldBytes): Promise<{ readonly body: Buffer; readonly bytes: number }> {
  return new Promise((resolve, reject) => {
    let body: Buffer | undefined
    let bytes = 0
    let holding: ClientBytes | undefined
    const refuse = (error: unknown) => {
      body = undefined
      holding?.leave()
      reject(error)
    }
    request.on('data', (piece: Buffer) => {
      bytes += piece.length
      if (bytes > MAX_BODY_BYTES) {
        refuse(tooLarge())
        return
      }
      // Most bodies come in one piece, with nothing to follow.
      if (request.complete && body === undefined) {
        body = piece
        return
      }
      // Node ends those that are late before.
      holding ??= held.enter(2 * REQUEST_TIMEOUT_MS, () => refuse(noRoom()))
      const before = body?.length ?? 0
      body = appended(body, bytes - piece.length, piece)
      holding.grow(body.length - before)
    })
    request.on('end', () => {
      holding?.leave()
      resolve({ body: body ?? EMPTY, bytes })
    })
    request.on('error', refuse)
    request.on('close', () => {
      // Every request is closed in the end, and an error is not made for nothing.
      if (!request.complete) refuse(new BadRequest(400, 'ABORTED', 'the client went away before it had sent all'))
    })
  })
}

/**
 * Copied together: a body that comes byte by byte would be held as many pieces, each of which is
 * larger than a byte.
 */
function appended(body: Buffer | undefined, used: number, piece: Buffer): Buffer {
  const wanted = used + piece.length
  const room = body !== undefined && body.length >= wanted ? body : Buffer.allocUnsafeSlow(Math.min(2 * wanted, MAX_BODY_BYTES))
  if (body !== undefined && room !== body) body.copy(room, 0, 0, used)
  piece.copy(room, used)
  return room
}

function tooLarge(): BadRequest {
  // What is still under way is not read: the connection ends with the answer.
  return new BadRequest(413, 'BODY', `the body must be at most ${MAX_BODY_BYTES} bytes`, { connection: 'close' })
}

function noRoom(): BadRequest {
  const reason = 'too many requests are under way whose bodies have not come in full, and this is the oldest of them'
  return new BadRequest(503, 'BUSY', reason, { connection: 'close', 'retry-after': '1' })
}
