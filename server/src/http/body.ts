/** The JSON in a request, read within bounds. */
import type { IncomingMessage } from 'node:http'
import { BadRequest } from './problem.ts'

export const MAX_BODY_BYTES = 1_048_576

/** A browser sends other types to anybody without asking; JSON it does not. */
export async function jsonBody(request: IncomingMessage): Promise<unknown> {
  const type = request.headers['content-type'] ?? ''
  if (!/^application\/json *(;|$)/i.test(type)) {
    throw new BadRequest(415, 'CONTENT_TYPE', `content-type ${JSON.stringify(type)} must be application/json`)
  }
  const declared = Number(request.headers['content-length'] ?? 0)
  if (declared > MAX_BODY_BYTES) throw tooLarge()
  const text = await textOf(request)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new BadRequest(400, 'JSON', `the body must be JSON: ${(error as Error).message}`)
  }
}

// Listeners and not `for await`, which costs a promise for each piece and a quarter of all decisions.
function textOf(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    let bytes = 0
    request.on('data', (piece: Buffer) => {
      bytes += piece.length
      if (bytes > MAX_BODY_BYTES) reject(tooLarge())
      else pieces.push(piece)
    })
    request.on('end', () => resolve((pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)).toString('utf8')))
    request.on('error', reject)
    request.on('close', () => {
      // Every request is closed in the end, and an error is not made for nothing.
      if (!request.complete) reject(new BadRequest(400, 'ABORTED', 'the client went away before it had sent all'))
    })
  })
}

function tooLarge(): BadRequest {
  // What is still under way is not read: the connection ends with the answer.
  return new BadRequest(413, 'BODY', `the body must be at most ${MAX_BODY_BYTES} bytes`, { connection: 'close' })
}
